// SPDX-License-Identifier: Apache-2.0
//
// A block of threads takes a block of elements, wherever its parameter lies: one element each, and
// two maxima over the block where moments are codes. Each byte is moved once: 16.03 bytes an
// element with 8-bit moments and an fp32 value. Arithmetic of adamw_cuda.cu; a code is found by
// eight comparisons with thresholds that stay in the first cache.
#include "convoy/model/kernels/adamw/adamw_narrow_launch.h"
#include "convoy/model/kernels/adamw/rounding_draws.h"
#include "convoy/model/kernels/cuda/block_shape.h"
#include "convoy/model/kernels/cuda/chunks.cuh"
#include "convoy/model/kernels/cuda/elements.cuh"
#include "convoy/model/kernels/cuda/teams.cuh"

namespace convoy::kernels::gpu {
namespace {

static_assert(kNarrowBlock == kBlockThreads);

struct Largest {
  float mean;
  float square;

  CONVOY_DEVICE void join(const Largest& other) {
    mean = other.mean > mean ? other.mean : mean;
    square = other.square > square ? other.square : square;
  }
  CONVOY_DEVICE Largest across(int distance) const {
    return {from_lane_across(mean, distance), from_lane_across(square, distance)};
  }
};

CONVOY_DEVICE float read(const void* from, bool is_bf16, uint64_t at) {
  return is_bf16 ? as_float(uint32_t{static_cast<const Bf16*>(from)[at].bits} << 16)
                 : static_cast<const float*>(from)[at];
}

CONVOY_DEVICE void write_drawn(void* to, uint64_t at, float value, uint32_t draw) {
  static_cast<Bf16*>(to)[at].bits = static_cast<uint16_t>(drawn_bf16(as_bits(value), draw));
}

// Number of thresholds below x.
CONVOY_DEVICE uint8_t code_of(const float* thresholds, float x) {
  uint32_t code = 0;
  for (uint32_t step = 128; step > 0; step /= 2)
    if (x > thresholds[code + step - 1]) code += step;
  return static_cast<uint8_t>(code);
}

struct Element {
  float value = 0, mean = 0, square = 0;
};

CONVOY_DEVICE Element read_element(const NarrowAdamWLaunch& launch, const NarrowAdamWParameter& of,
                                   uint64_t block, uint64_t at) {
  Element element;
  element.value = read(of.value, of.value_is_bf16 != 0, at);
  if (of.moments == MomentType::Codes) {
    element.mean = launch.with_sign.values[static_cast<const uint8_t*>(of.exp_avg)[at]] *
                   of.exp_avg_scale[block];
    element.square = launch.without_sign.values[static_cast<const uint8_t*>(of.exp_avg_sq)[at]] *
                     of.exp_avg_sq_scale[block];
  } else {
    element.mean = read(of.exp_avg, of.moments == MomentType::Bf16, at);
    element.square = read(of.exp_avg_sq, of.moments == MomentType::Bf16, at);
  }
  return element;
}

CONVOY_DEVICE void step(const AdamWFactors& factors, float gradient, Element& of) {
  const float g = gradient * factors.gradient_scale;
  of.mean += (g - of.mean) * factors.one_minus_beta1;
  of.square = of.square * factors.beta2 + g * g * factors.one_minus_beta2;
  const float denominator =
      __nvvm_div_rn_f(__nvvm_sqrt_rn_f(of.square), factors.root_bias_correction) + factors.epsilon;
  of.value = of.value * factors.keep - __nvvm_div_rn_f(of.mean, denominator) * factors.step_size;
}

CONVOY_DEVICE uint32_t drawn_word(CounterKey key, uint64_t element) {
  return counter_hash(key, static_cast<uint32_t>(element), static_cast<uint32_t>(element >> 32));
}

CONVOY_DEVICE void write_floats(const NarrowAdamWParameter& of, uint64_t at, const Element& from) {
  const uint64_t element = of.first_element + at;
  if (of.moments == MomentType::Bf16) {
    const uint32_t word = drawn_word(of.key, element);
    write_drawn(of.exp_avg, at, from.mean, word & 0xffffu);
    write_drawn(of.exp_avg_sq, at, from.square, word >> 16);
  } else if (of.moments == MomentType::Fp32) {
    static_cast<float*>(of.exp_avg)[at] = from.mean;
    static_cast<float*>(of.exp_avg_sq)[at] = from.square;
  }
  if (of.value_is_bf16 != 0)
    write_drawn(of.value, at, from.value, drawn_word(value_key(of.key), element) & 0xffffu);
  else
    static_cast<float*>(of.value)[at] = from.value;
  if (of.rounded != nullptr)
    static_cast<Bf16*>(of.rounded)[at].bits = static_cast<uint16_t>(bf16_bits(from.value));
}

CONVOY_DEVICE float magnitude(float x) { return as_float(as_bits(x) & 0x7fffffffu); }

}  // namespace

CONVOY_KERNEL void adamw_narrow(const NarrowAdamWLaunch launch) {
  const uint64_t blocks = launch.first_block[launch.num_parameters];
  for (uint64_t number = nvidia::block_number(); number < blocks; number += nvidia::num_blocks()) {
    const uint32_t parameter = owner_of_chunk(launch.first_block, launch.num_parameters, number);
    const NarrowAdamWParameter of = launch.parameters[parameter];
    const uint64_t block = number - launch.first_block[parameter];
    const uint64_t at = block * kNarrowBlock + thread_of_block();
    const bool has_element = at < of.count;
    Element element;
    if (has_element) {
      element = read_element(launch, of, block, at);
      step(launch.factors, read(of.gradient, of.gradient_is_bf16 != 0, at), element);
      write_floats(of, at, element);
    }
    if (of.moments != MomentType::Codes) continue;
    Largest largest{magnitude(element.mean), magnitude(element.square)};
    largest = BlockTeam::joined(largest);
    const float mean_scale = largest.mean == 0 ? 1.0f : largest.mean;
    const float square_scale = largest.square == 0 ? 1.0f : largest.square;
    if (has_element) {
      static_cast<uint8_t*>(of.exp_avg)[at] =
          code_of(launch.with_sign.thresholds, __nvvm_div_rn_f(element.mean, mean_scale));
      static_cast<uint8_t*>(of.exp_avg_sq)[at] =
          code_of(launch.without_sign.thresholds, __nvvm_div_rn_f(element.square, square_scale));
    }
    if (thread_of_block() == 0) {
      of.exp_avg_scale[block] = mean_scale;
      of.exp_avg_sq_scale[block] = square_scale;
    }
  }
}

}  // namespace convoy::kernels::gpu
