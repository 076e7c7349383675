// SPDX-License-Identifier: Apache-2.0
//
// Rounds as bitsandbytes' CPU code does: a whole block is multiplied by 1 / absmax, an incomplete
// last block is divided by absmax; a tie takes the lower number. Nested absmax:
// convoy/model/models/NOTES.md.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"
#include "convoy/model/kernels/bitsandbytes_weight/code_tables.h"

namespace convoy::kernels {
namespace {

// The least divisor of a block: with a smaller one, 1 / absmax would be infinite.
constexpr float kSmallestAbsmax = 1e-38f;
constexpr int64_t kBlocksOfTask = 256;
// Elements that are widened at a time.
constexpr int64_t kElementsAtOnce = 1 << 22;

// Encodes numbers in [-1, 1].
struct NibbleCoder {
  std::array<float, 15> bounds{};     // between neighbours
  std::array<uint8_t, 16> pattern{};  // codes in the order of their numbers

  explicit NibbleCoder(const NibbleTable& table) {
    std::iota(pattern.begin(), pattern.end(), uint8_t{0});
    std::stable_sort(pattern.begin(), pattern.end(),
                     [&](uint8_t a, uint8_t b) { return table[a] < table[b]; });
    for (size_t rank = 0; rank < bounds.size(); ++rank)
      bounds[rank] = (table[pattern[rank]] + table[pattern[rank + 1]]) / 2;
  }

  static constexpr int64_t kTogether = 32;
  using Numbers = std::array<float, kTogether>;
  using Ranks = std::array<int32_t, kTogether>;

  Ranks rank(const Numbers& values) const {
    Ranks ranks{};
    for (const float bound : bounds)
      for (int64_t at = 0; at < kTogether; ++at) ranks[at] += values[at] > bound ? 1 : 0;
    return ranks;
  }
};

float largest_of(const float* values, int64_t count) {
  float largest = 0;
  for (int64_t at = 0; at < count; ++at) largest = std::max(largest, std::fabs(values[at]));
  return largest;
}

// Encodes a whole block, or the incomplete last one. `patterns`: one byte per element.
float encode_block(const NibbleCoder& coder, const float* values, int64_t count, int64_t block,
                   uint8_t* patterns) {
  constexpr int64_t kTogether = NibbleCoder::kTogether;
  const float largest = largest_of(values, count);
  const float divisor = std::max(largest, kSmallestAbsmax);
  const float factor = 1.0f / divisor;
  for (int64_t first = 0; first < count; first += kTogether) {
    const int64_t width = std::min(kTogether, count - first);
    NibbleCoder::Numbers scaled{};
    for (int64_t at = 0; at < width; ++at) {
      const float value = values[first + at];
      scaled[at] = std::clamp(count == block ? value * factor : value / divisor, -1.0f, 1.0f);
    }
    const NibbleCoder::Ranks ranks = coder.rank(scaled);
    for (int64_t at = 0; at < width; ++at) patterns[first + at] = coder.pattern[ranks[at]];
  }
  return count == block ? largest : divisor;
}

void encode_blocks(const NibbleCoder& coder, const at::Tensor& wide, int64_t block, uint8_t* codes,
                   float* absmax) {
  const auto* values = wide.const_data_ptr<float>();
  const int64_t numel = wide.numel();
  at::parallel_for(0, (numel + block - 1) / block, kBlocksOfTask, [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> patterns(block + 1);
    for (int64_t index = begin; index < end; ++index) {
      const int64_t first = index * block;
      const int64_t count = std::min(block, numel - first);
      absmax[index] = encode_block(coder, values + first, count, block, patterns.data());
      // The half byte after an odd end holds the code of 0.
      if (count % 2 == 1) {
        const float zero = 0;
        encode_block(coder, &zero, 1, block, patterns.data() + count);
      }
      for (int64_t at = 0; at < count; at += 2)
        codes[(first + at) / 2] = static_cast<uint8_t>(patterns[at] << 4 | patterns[at + 1]);
    }
  });
}

// bitsandbytes' CPU code rounds to a grid of numbers first, and so some codes near a bound are not
// the nearest.
class NestedCoder {
 public:
  explicit NestedCoder(const at::Tensor& table) : codes_(kGrid) {
    const auto* numbers = table.const_data_ptr<float>();
    uint8_t code = 0;
    for (int64_t at = 0; at < kGrid; ++at) {
      const float value = -1.0f + 2.0f * static_cast<float>(at) / (kGrid - 1);
      while (code < 255 && 0.5f * (numbers[code] + numbers[code + 1]) < value) ++code;
      codes_[at] = code;
    }
  }
  uint8_t code(float value) const {
    const float bounded = std::clamp(value, -1.0f, 1.0f);
    return codes_[static_cast<size_t>((bounded + 1.0f) * 0.5f * (kGrid - 1) + 0.5f)];
  }

 private:
  static constexpr int64_t kGrid = 65536;
  std::vector<uint8_t> codes_;
};

void nest(BitsandbytesWeight& weight, const at::Tensor& absmax) {
  const at::Tensor mean = absmax.mean();
  weight.nested_offset.fill_(mean);
  const at::Tensor beside = absmax - mean;
  const NestedCoder coder(weight.nested_table);
  const auto* values = beside.const_data_ptr<float>();
  auto* codes = weight.absmax.mutable_data_ptr<uint8_t>();
  auto* largest = weight.nested_absmax.mutable_data_ptr<float>();
  for (int64_t first = 0; first < beside.numel(); first += kNestedBlock) {
    const int64_t count = std::min(kNestedBlock, beside.numel() - first);
    const float of_block = largest_of(values + first, count);
    largest[first / kNestedBlock] = of_block;
    const float factor = 1.0f / of_block;
    for (int64_t at = first; at < first + count; ++at)
      codes[at] = of_block == 0 ? 0 : coder.code(values[at] * factor);
  }
}

void require_finite(const at::Tensor& part) {
  if (!part.isfinite().all().item<bool>())
    throw DataError("a weight that is not finite cannot be quantised",
                    {.hint = "fetch the model again: it holds NaN or infinity"});
}

// bitsandbytes rounds the weight to fp16 first.
void encode_int8(const at::Tensor& weight, BitsandbytesWeight& coded) {
  const int64_t rows_at_once = std::max<int64_t>(1, kElementsAtOnce / weight.size(1));
  for (int64_t row = 0; row < weight.size(0); row += rows_at_once) {
    const int64_t rows = std::min(rows_at_once, weight.size(0) - row);
    const at::Tensor part = weight.narrow(0, row, rows);
    require_finite(part);
    const at::Tensor half = part.to(at::kHalf);
    if (!half.isfinite().all().item<bool>())
      throw DataError("int8 quantisation rounds to fp16 first, which holds no weight beyond 65504",
                      {.hint = "take --quantization nf4"});
    const at::Tensor wide = half.to(at::kFloat);
    const at::Tensor largest = wide.abs().amax({1});
    coded.absmax.narrow(0, row, rows).copy_(largest);
    // PyTorch computes 127 / x in Python in this way. A row of zeros has no scale.
    const at::Tensor scale = largest.reciprocal().mul_(127.0).masked_fill_(largest.eq(0), 0);
    coded.codes.narrow(0, row, rows).copy_(wide.mul(scale.unsqueeze(1)).round_());
  }
}

void encode_nibbles(const at::Tensor& weight, BitsandbytesWeight& coded) {
  const NibbleCoder coder(coded.format.type == CodeType::Nf4 ? nf4_table() : fp4_table());
  const at::Tensor flat = weight.reshape({-1});
  const int64_t block = coded.format.block;
  const at::Tensor absmax =
      coded.format.nested ? at::empty({coded.absmax.numel()}, at::kFloat) : coded.absmax;
  for (int64_t first = 0; first < flat.numel(); first += kElementsAtOnce) {
    const at::Tensor part = flat.narrow(0, first, std::min(kElementsAtOnce, flat.numel() - first));
    require_finite(part);
    encode_blocks(coder, part.to(at::kFloat), block,
                  coded.codes.mutable_data_ptr<uint8_t>() + first / 2,
                  absmax.mutable_data_ptr<float>() + first / block);
  }
  if (coded.format.nested) nest(coded, absmax);
}

}  // namespace

BitsandbytesWeight encode_weight(const at::Tensor& weight, const BitsandbytesFormat& format) {
  const at::ScalarType dtype = weight.scalar_type();
  CONVOY_INVARIANT(weight.is_cpu() && weight.numel() > 0 &&
                       (dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf) &&
                       (format.type != CodeType::Int8 || weight.dim() == 2),
                   "encode_weight needs fp32, bf16 or fp16 on the CPU");
  const bool power_of_two = (format.block & (format.block - 1)) == 0;
  if (!power_of_two || format.block < 32 || format.block > 4096)
    throw ConfigError(
        fmt::format("blocks have 32, 64, 128, 256, 512, 1024, 2048 or 4096 elements, found {}",
                    format.block),
        {.hint = "leave the block size out: 64 is the usual one"});
  const at::NoGradGuard no_grad;
  BitsandbytesWeight coded = declare_bitsandbytes_weight(format, weight.sizes(), dtype, at::kCPU);
  if (format.type == CodeType::Int8)
    encode_int8(weight, coded);
  else
    encode_nibbles(weight, coded);
  return coded;
}

}  // namespace convoy::kernels
