// SPDX-License-Identifier: Apache-2.0
//
// A block of elements at a time is widened into a buffer that stays in the first cache, goes
// through the loop of fp32, and is narrowed again.
#include <algorithm>
#include <cmath>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/adamw/adamw_ops.h"
#include "convoy/model/kernels/adamw/rounding_draws.h"
#include "convoy/model/kernels/dynamic_code/dynamic_code.h"
#include "convoy/model/kernels/simd/element.h"
#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels {
namespace {

struct Block {
  int64_t number = 0;
  int64_t begin = 0;  // element
  int64_t count = 0;
};

struct Moments {
  DynamicMap kind;
  const at::Tensor& values;
  const at::Tensor& scales;
};

void widen_floats(const at::Tensor& from, const Block& block, float* to) {
  if (from.scalar_type() == at::kFloat)
    std::copy_n(from.const_data_ptr<float>() + block.begin, block.count, to);
  else
    simd_kernels<at::BFloat16>().to_float(from.const_data_ptr<at::BFloat16>() + block.begin, to,
                                          block.count);
}

void widen(const Moments& from, const Block& block, float* to) {
  if (from.values.scalar_type() != at::kByte) return widen_floats(from.values, block, to);
  const std::array<float, 256>& values = DynamicCode::of(from.kind).values();
  const uint8_t* codes = from.values.const_data_ptr<uint8_t>() + block.begin;
  const float scale = from.scales.const_data_ptr<float>()[block.number];
  for (int64_t at = 0; at < block.count; ++at) to[at] = values[codes[at]] * scale;
}

// `draws`: words; the 16 bits from `shift` on decide the rounding.
void narrow_floats(const float* from, const uint32_t* draws, int shift, const at::Tensor& to,
                   const Block& block) {
  if (to.scalar_type() == at::kFloat) {
    std::copy_n(from, block.count, to.mutable_data_ptr<float>() + block.begin);
    return;
  }
  at::BFloat16* rounded = to.mutable_data_ptr<at::BFloat16>() + block.begin;
  for (int64_t at = 0; at < block.count; ++at)
    rounded[at].x = static_cast<uint16_t>(
        drawn_bf16(__builtin_bit_cast(uint32_t, from[at]), (draws[at] >> shift) & 0xffffu));
}

void encode(const float* from, const Moments& to, const Block& block) {
  const DynamicCode& map = DynamicCode::of(to.kind);
  float largest = 0;
  for (int64_t at = 0; at < block.count; ++at) largest = std::max(largest, std::fabs(from[at]));
  const float scale = largest == 0 ? 1.0f : largest;
  uint8_t* codes = to.values.mutable_data_ptr<uint8_t>() + block.begin;
  for (int64_t at = 0; at < block.count; ++at) codes[at] = map.nearest(from[at] / scale);
  to.scales.mutable_data_ptr<float>()[block.number] = scale;
}

void narrow(const float* from, const uint32_t* draws, int shift, const Moments& to,
            const Block& block) {
  if (to.values.scalar_type() == at::kByte)
    encode(from, to, block);
  else
    narrow_floats(from, draws, shift, to.values, block);
}

// No block crosses a multiple of 2^32: pieces begin at the start of a block, and the size of a
// block divides 2^32.
void draw(CounterKey key, int64_t first_element, int64_t count, uint32_t* words) {
  const auto low = static_cast<uint32_t>(first_element);
  const auto high = static_cast<uint32_t>(first_element >> 32);
  for (int64_t at = 0; at < count; ++at)
    words[at] = counter_hash(key, low + static_cast<uint32_t>(at), high);
}

void update_block(const AdamWTensors& of, const AdamWFactors& factors, const Block& block) {
  float value[kMomentBlock], gradient[kMomentBlock], mean[kMomentBlock], square[kMomentBlock];
  uint32_t draws[kMomentBlock] = {};
  const Moments means{DynamicMap::Signed, of.exp_avg, of.exp_avg_scale};
  const Moments squares{DynamicMap::Unsigned, of.exp_avg_sq, of.exp_avg_sq_scale};
  widen_floats(of.value, block, value);
  widen_floats(of.gradient, block, gradient);
  widen(means, block, mean);
  widen(squares, block, square);
  simd_kernels<float>().adamw(factors, value, gradient, mean, square, nullptr, block.count);
  const CounterKey key = counter_key(of.draw_key);
  const int64_t first = of.first_element + block.begin;
  if (of.exp_avg.scalar_type() == at::kBFloat16) draw(key, first, block.count, draws);
  narrow(mean, draws, 0, means, block);
  narrow(square, draws, 16, squares, block);
  if (of.value.scalar_type() == at::kBFloat16) draw(value_key(key), first, block.count, draws);
  narrow_floats(value, draws, 0, of.value, block);
  if (of.rounded.defined())
    simd_kernels<at::BFloat16>().round_row(
        value, of.rounded.mutable_data_ptr<at::BFloat16>() + block.begin, block.count, 1.0f);
}

}  // namespace

void update_narrow_on_cpu(const std::vector<AdamWTensors>& parameters, const AdamWStep& step) {
  const AdamWFactors factors = factors_of(step);
  for (const AdamWTensors& of : parameters) {
    const int64_t numel = of.value.numel();
    for_rows(
        (numel + kMomentBlock - 1) / kMomentBlock, kMomentBlock, [&](int64_t begin, int64_t end) {
          for (int64_t number = begin; number < end; ++number) {
            const int64_t first = number * kMomentBlock;
            update_block(
                of, factors,
                {.number = number, .begin = first, .count = std::min(kMomentBlock, numel - first)});
          }
        });
  }
}

}  // namespace convoy::kernels
