// SPDX-License-Identifier: Apache-2.0
//
// silu and gelu_tanh are x * sigmoid(k(x)): k(x) = x for silu, and since 1 + tanh(u) = 2 sigmoid(2
// u), for gelu_tanh k(x) = 2 sqrt(2 / pi) (x + 0.044715 x^3). Each input is read and each result
// written once. Reference: gated_activation_aten.cpp.
#include "convoy/model/kernels/cuda/elements.cuh"
#include "convoy/model/kernels/cuda/functions.cuh"
#include "convoy/model/kernels/gated_activation/gated_activation_launch.h"

namespace convoy::kernels::gpu {
namespace {

// Computed from |x|, so that nothing overflows and neither member is a difference.
struct Sigmoid {
  float value, rest;  // rest = 1 - value

  CONVOY_DEVICE explicit Sigmoid(float x) {
    const float small = exponential(-__builtin_fabsf(x));
    const float greater = quotient(1, 1 + small), lesser = small * greater;
    value = x < 0 ? lesser : greater;
    rest = x < 0 ? greater : lesser;
  }
};

// The value of an activation and its derivative.
struct Activated {
  float value, slope;
};

struct Silu {
  CONVOY_DEVICE static Activated at(float x) {
    const Sigmoid s(x);
    return {x * s.value, s.value + x * s.value * s.rest};
  }
};

struct GeluTanh {
  static constexpr float kRoot = 1.5957691216f;  // 2 sqrt(2 / pi)
  static constexpr float kCubic = 0.044715f;
  CONVOY_DEVICE static Activated at(float x) {
    const Sigmoid s(kRoot * (x + kCubic * x * x * x));
    const float inner_slope = kRoot * (1 + 3 * kCubic * x * x);
    return {x * s.value, s.value + x * s.value * s.rest * inner_slope};
  }
};

struct PlainSigmoid {
  CONVOY_DEVICE static Activated at(float x) {
    const Sigmoid s(x);
    return {s.value, s.value * s.rest};
  }
};

template <class Element, class Activation>
CONVOY_DEVICE void activate(const GatedActivationLaunch& launch) {
  for_elements<kPerLoad<Element>>(launch.count, launch.num_vectors, [&](uint64_t at, auto count) {
    constexpr int kCount = decltype(count)::value;
    float gate[kCount], up[kCount];
    const uint64_t place = launch.between == 0 ? at : at + at / launch.width * launch.between;
    load(static_cast<const Element*>(launch.gate) + place, gate);
    load(static_cast<const Element*>(launch.up) + place, up);
    for (int i = 0; i < kCount; ++i) gate[i] = Activation::at(gate[i]).value * up[i];
    store(static_cast<Element*>(launch.y) + at, gate);
  });
}

template <class Element, class Activation>
CONVOY_DEVICE void differentiate(const GatedActivationLaunch& launch) {
  for_elements<kPerLoad<Element>>(launch.count, launch.num_vectors, [&](uint64_t at, auto count) {
    constexpr int kCount = decltype(count)::value;
    float gate[kCount], up[kCount], grad[kCount];
    load(static_cast<const Element*>(launch.gate) + at, gate);
    load(static_cast<const Element*>(launch.up) + at, up);
    load(static_cast<const Element*>(launch.grad) + at, grad);
    for (int i = 0; i < kCount; ++i) {
      const Activated activated = Activation::at(gate[i]);
      gate[i] = grad[i] * up[i] * activated.slope;
      up[i] = grad[i] * activated.value;
    }
    store(static_cast<Element*>(launch.grad_gate) + at, gate);
    store(static_cast<Element*>(launch.grad_up) + at, up);
  });
}

}  // namespace

// The cases are numbered as in kernels::Activation.
#define CONVOY_GATED_ACTIVATION(Element, type)                                              \
  CONVOY_KERNEL void gated_activation_##type(const GatedActivationLaunch launch) {          \
    if (launch.activation == 0)                                                             \
      activate<Element, Silu>(launch);                                                      \
    else if (launch.activation == 1)                                                        \
      activate<Element, GeluTanh>(launch);                                                  \
    else                                                                                    \
      activate<Element, PlainSigmoid>(launch);                                              \
  }                                                                                         \
  CONVOY_KERNEL void gated_activation_backward_##type(const GatedActivationLaunch launch) { \
    if (launch.activation == 0)                                                             \
      differentiate<Element, Silu>(launch);                                                 \
    else if (launch.activation == 1)                                                        \
      differentiate<Element, GeluTanh>(launch);                                             \
    else                                                                                    \
      differentiate<Element, PlainSigmoid>(launch);                                         \
  }

CONVOY_GATED_ACTIVATION(float, fp32)
CONVOY_GATED_ACTIVATION(Bf16, bf16)

}  // namespace convoy::kernels::gpu
