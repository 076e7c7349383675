// SPDX-License-Identifier: Apache-2.0
//
// Many parameters in one launch: a block takes chunks of any parameter. Memory traffic: value,
// gradient and both moments are read once, and value and moments written once: 28 bytes an element,
// 2 more with a bf16 copy, 2 fewer with a gradient in bf16. The arithmetic is the same as in
// row_loops.inl, with correctly rounded roots and quotients.
#include "convoy/model/kernels/adamw/adamw_launch.h"
#include "convoy/model/kernels/cuda/block_shape.h"
#include "convoy/model/kernels/cuda/chunks.cuh"
#include "convoy/model/kernels/cuda/elements.cuh"
#include "convoy/model/kernels/cuda/teams.cuh"

namespace convoy::kernels::gpu {
namespace {

template <class Gradient, int kCount>
CONVOY_DEVICE void update(const AdamWFactors& factors, const AdamWParameter& of, uint64_t at) {
  float value[kCount], grad[kCount], mean[kCount], square[kCount];
  load(of.value + at, value);
  load(static_cast<const Gradient*>(of.gradient) + at, grad);
  load(of.exp_avg + at, mean);
  load(of.exp_avg_sq + at, square);
  for (int i = 0; i < kCount; ++i) {
    const float g = grad[i] * factors.gradient_scale;
    mean[i] += (g - mean[i]) * factors.one_minus_beta1;
    square[i] = square[i] * factors.beta2 + g * g * factors.one_minus_beta2;
    const float denominator =
        __nvvm_div_rn_f(__nvvm_sqrt_rn_f(square[i]), factors.root_bias_correction) +
        factors.epsilon;
    value[i] = value[i] * factors.keep - __nvvm_div_rn_f(mean[i], denominator) * factors.step_size;
  }
  store(of.value + at, value);
  store(of.exp_avg + at, mean);
  store(of.exp_avg_sq + at, square);
  if (of.rounded != nullptr) store(static_cast<Bf16*>(of.rounded) + at, value);
}

CONVOY_DEVICE bool fits_vectors(const AdamWParameter& of) {
  const auto bits = [](const void* pointer) { return reinterpret_cast<uint64_t>(pointer); };
  const uint64_t all = bits(of.value) | bits(of.gradient) | bits(of.exp_avg) | bits(of.exp_avg_sq) |
                       bits(of.rounded);
  return all % 16 == 0;
}

template <class Gradient>
CONVOY_DEVICE void update_all(const AdamWLaunch& launch) {
  constexpr int kTogether = kPerLoad<float>;
  const uint64_t chunks = launch.first_chunk[launch.num_parameters];
  for (uint64_t chunk = nvidia::block_number(); chunk < chunks; chunk += nvidia::num_blocks()) {
    const uint32_t number = owner_of_chunk(launch.first_chunk, launch.num_parameters, chunk);
    const AdamWParameter of = launch.parameters[number];
    const uint64_t begin = (chunk - launch.first_chunk[number]) * kAdamWChunk;
    const uint64_t end = begin + kAdamWChunk < of.count ? begin + kAdamWChunk : of.count;
    const uint64_t end_of_vectors =
        fits_vectors(of) ? begin + (end - begin) / kTogether * kTogether : begin;
    for (uint64_t at = begin + thread_of_block() * kTogether; at < end_of_vectors;
         at += kBlockThreads * kTogether)
      update<Gradient, kTogether>(launch.factors, of, at);
    for (uint64_t at = end_of_vectors + thread_of_block(); at < end; at += kBlockThreads)
      update<Gradient, 1>(launch.factors, of, at);
  }
}

}  // namespace

CONVOY_KERNEL void adamw(const AdamWLaunch launch) {
  if (launch.gradients_are_bf16)
    update_all<Bf16>(launch);
  else
    update_all<float>(launch);
}

}  // namespace convoy::kernels::gpu
