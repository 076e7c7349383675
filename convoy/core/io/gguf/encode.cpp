// SPDX-License-Identifier: Apache-2.0
//
// Scales are searched for as in llama.cpp's ggml-quants.c (MIT licence), with the same numbers in
// the same order of operations in fp32: other orders give other bytes. decode.cpp has the layouts.
#include "convoy/core/io/gguf/encode.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "convoy/core/base/error.h"
#include "convoy/core/io/gguf/half.h"

namespace convoy::gguf {
namespace {

using CodeByte = uint8_t;

void put_u16(CodeByte* at, uint16_t value) {
  at[0] = static_cast<CodeByte>(value);
  at[1] = static_cast<CodeByte>(value >> 8);
}
void put_u32(CodeByte* at, uint32_t value) {
  put_u16(at, static_cast<uint16_t>(value));
  put_u16(at + 2, static_cast<uint16_t>(value >> 16));
}
// Writes `value` in fp16 and returns the value that a reader gets.
float put_half(CodeByte* at, float value) {
  const uint16_t half = half_of_float(value);
  put_u16(at, half);
  return float_of_half(half);
}

float reciprocal_or_zero(float value) { return value != 0.0f ? 1.0f / value : 0.0f; }

// Rounds a number below 2^22 to the nearest integer, ties to even: the integer is in the low bits
// of the sum with 1.5 * 2^23.
int nearest(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value + 12582912.0f);
  return static_cast<int>(bits & 0x007fffffu) - 0x00400000;
}

void encode_f32(const float* x, CodeByte* block) { std::memcpy(block, x, sizeof(float)); }
void encode_f16(const float* x, CodeByte* block) { put_u16(block, half_of_float(*x)); }
void encode_bf16(const float* x, CodeByte* block) { put_u16(block, bfloat_of_float(*x)); }

void encode_q8_0(const float* x, CodeByte* block) {
  float most = 0.0f;
  for (int i = 0; i < 32; ++i) most = std::max(most, std::fabs(x[i]));
  const float scale = most / 127.0f, inverse = reciprocal_or_zero(scale);
  put_half(block, scale);
  for (int i = 0; i < 32; ++i)
    block[2 + i] = static_cast<CodeByte>(static_cast<int8_t>(std::round(x[i] * inverse)));
}

// The value farthest from zero, with its sign; the first of several such values.
float farthest(const float* x, int count) {
  float size = 0.0f, found = 0.0f;
  for (int i = 0; i < count; ++i) {
    if (size >= std::fabs(x[i])) continue;
    size = std::fabs(x[i]);
    found = x[i];
  }
  return found;
}

struct Range {
  float least = FLT_MAX;
  float most = -FLT_MAX;
};
Range range_of(const float* x, int count) {
  Range range;
  for (int i = 0; i < count; ++i) {
    if (x[i] < range.least) range.least = x[i];
    if (x[i] > range.most) range.most = x[i];
  }
  return range;
}

// Truncates, because the caller has already added 0.5 to `scaled`.
int code_below(float scaled, int most) {
  return std::min(most, static_cast<int>(static_cast<int8_t>(scaled)));
}

void encode_q4_0(const float* x, CodeByte* block) {
  const float scale = farthest(x, 32) / -8.0f, inverse = reciprocal_or_zero(scale);
  put_half(block, scale);
  for (int i = 0; i < 16; ++i)
    block[2 + i] = static_cast<CodeByte>(code_below(x[i] * inverse + 8.5f, 15) |
                                         code_below(x[i + 16] * inverse + 8.5f, 15) << 4);
}

void encode_q4_1(const float* x, CodeByte* block) {
  const Range range = range_of(x, 32);
  const float scale = (range.most - range.least) / 15.0f, inverse = reciprocal_or_zero(scale);
  put_half(block, scale);
  put_half(block + 2, range.least);
  for (int i = 0; i < 16; ++i)
    block[4 + i] =
        static_cast<CodeByte>(code_below((x[i] - range.least) * inverse + 0.5f, 15) |
                              code_below((x[i + 16] - range.least) * inverse + 0.5f, 15) << 4);
}

void put_five(const std::array<int, 32>& codes, CodeByte* high, CodeByte* low) {
  uint32_t fifth = 0;
  for (int i = 0; i < 16; ++i) {
    low[i] = static_cast<CodeByte>((codes[i] & 15) | (codes[i + 16] & 15) << 4);
    fifth |= static_cast<uint32_t>(codes[i] >> 4 & 1) << i;
    fifth |= static_cast<uint32_t>(codes[i + 16] >> 4 & 1) << (i + 16);
  }
  put_u32(high, fifth);
}

void encode_q5_0(const float* x, CodeByte* block) {
  const float scale = farthest(x, 32) / -16.0f, inverse = reciprocal_or_zero(scale);
  put_half(block, scale);
  std::array<int, 32> codes;
  for (int i = 0; i < 32; ++i) codes[i] = code_below(x[i] * inverse + 16.5f, 31);
  put_five(codes, block + 2, block + 6);
}

void encode_q5_1(const float* x, CodeByte* block) {
  const Range range = range_of(x, 32);
  const float scale = (range.most - range.least) / 31.0f, inverse = reciprocal_or_zero(scale);
  put_half(block, scale);
  put_half(block + 2, range.least);
  std::array<int, 32> codes;
  for (int i = 0; i < 32; ++i)
    codes[i] = static_cast<CodeByte>((x[i] - range.least) * inverse + 0.5f);
  put_five(codes, block + 4, block + 8);
}

// Scale and offset of a group of 32 values.
struct GroupFit {
  float scale = 0.0f;
  float offset = 0.0f;  // subtracted from the scaled code
};
struct GroupSearch {
  int most_code;
  float first_step;
  int num_steps;
};

// Finds the scale near (most - least) / most_code, and its best offset, with the least weighted
// squared error. Writes the codes of this fit to `codes`.
GroupFit fit_group(const float* x, const float* weights, const GroupSearch& search, int* codes) {
  constexpr int kCount = 32;
  float least = x[0], most = x[0], sum_w = weights[0], sum_x = sum_w * x[0];
  for (int i = 1; i < kCount; ++i) {
    if (x[i] < least) least = x[i];
    if (x[i] > most) most = x[i];
    sum_w += weights[i];
    sum_x += weights[i] * x[i];
  }
  if (least > 0) least = 0;
  std::fill(codes, codes + kCount, 0);
  if (most == least) return {0.0f, -least};
  const auto num = static_cast<float>(search.most_code);
  float inverse = num / (most - least), scale = 1 / inverse, best = 0;
  for (int i = 0; i < kCount; ++i) {
    codes[i] = std::clamp(nearest(inverse * (x[i] - least)), 0, search.most_code);
    const float difference = scale * static_cast<float>(codes[i]) + least - x[i];
    best += weights[i] * (difference * difference);
  }
  std::array<float, kCount> tried;
  for (int step = 0; step <= search.num_steps; ++step) {
    inverse = (search.first_step + 0.1f * static_cast<float>(step) + num) / (most - least);
    float sum_l = 0, sum_l2 = 0, sum_xl = 0;
    for (int i = 0; i < kCount; ++i) {
      const auto code =
          static_cast<float>(std::clamp(nearest(inverse * (x[i] - least)), 0, search.most_code));
      tried[i] = code;
      sum_l += weights[i] * code;
      sum_l2 += weights[i] * code * code;
      sum_xl += weights[i] * code * x[i];
    }
    const float determinant = sum_w * sum_l2 - sum_l * sum_l;
    if (!(determinant > 0)) continue;
    float this_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
    float this_least = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
    if (this_least > 0) {
      this_least = 0;
      this_scale = sum_xl / sum_l2;
    }
    float error = 0;
    for (int i = 0; i < kCount; ++i) {
      const float difference = this_scale * tried[i] + this_least - x[i];
      error += weights[i] * (difference * difference);
    }
    if (!(error < best)) continue;
    best = error;
    scale = this_scale;
    least = this_least;  // the next steps start from it
    for (int i = 0; i < kCount; ++i) codes[i] = static_cast<int>(tried[i]);
  }
  return {scale, -least};
}

// Writes scale and offset in six bits each, as group_scale in decode.cpp reads them.
void put_group_scale(CodeByte* packed, int group, int scale, int offset) {
  if (group < 4) {
    packed[group] = static_cast<CodeByte>(scale);
    packed[group + 4] = static_cast<CodeByte>(offset);
    return;
  }
  packed[group + 4] = static_cast<CodeByte>((scale & 15) | (offset & 15) << 4);
  packed[group - 4] = static_cast<CodeByte>(packed[group - 4] | (scale >> 4) << 6);
  packed[group] = static_cast<CodeByte>(packed[group] | (offset >> 4) << 6);
}

template <bool kFive>
void encode_q45_k(const float* x, CodeByte* block) {
  constexpr GroupSearch kSearch = kFive ? GroupSearch{31, -0.5f, 15} : GroupSearch{15, -1.0f, 20};
  std::array<GroupFit, 8> fits;
  std::array<int, 256> codes;
  float most_scale = 0, most_offset = 0;
  for (int group = 0; group < 8; ++group) {
    const float* const part = x + 32 * group;
    float sum_squares = 0;
    for (int i = 0; i < 32; ++i) sum_squares += part[i] * part[i];
    const float typical = std::sqrt(sum_squares / 32);
    std::array<float, 32> weights;
    for (int i = 0; i < 32; ++i) weights[i] = typical + std::fabs(part[i]);
    fits[group] = fit_group(part, weights.data(), kSearch, codes.data() + 32 * group);
    most_scale = std::max(most_scale, fits[group].scale);
    most_offset = std::max(most_offset, fits[group].offset);
  }
  const float inverse_scale = most_scale > 0 ? 63.0f / most_scale : 0.0f;
  const float inverse_offset = most_offset > 0 ? 63.0f / most_offset : 0.0f;
  const float all = put_half(block, most_scale / 63.0f);
  const float all_offset = put_half(block + 2, most_offset / 63.0f);
  for (int group = 0; group < 8; ++group) {
    const auto whole = [](float value) {
      return std::min(63, static_cast<int>(static_cast<CodeByte>(nearest(value))));
    };
    const int own_scale = whole(inverse_scale * fits[group].scale);
    const int own_offset = whole(inverse_offset * fits[group].offset);
    put_group_scale(block + 4, group, own_scale, own_offset);
    const float scale = all * static_cast<float>(own_scale);
    if (scale == 0) continue;  // the codes of the group's fit stay, as in the reference
    const float offset = all_offset * static_cast<float>(own_offset);
    for (int i = 32 * group; i < 32 * (group + 1); ++i)
      codes[i] = std::clamp(nearest((x[i] + offset) / scale), 0, kSearch.most_code);
  }
  CodeByte* const fifth = block + 16;
  CodeByte* const low = block + (kFive ? 48 : 16);
  if (kFive) std::fill(fifth, fifth + 32, CodeByte{0});
  for (int group = 0; group < 8; group += 2) {
    for (int i = 0; i < 32; ++i) {
      const int first = codes[32 * group + i], second = codes[32 * (group + 1) + i];
      low[16 * group + i] = static_cast<CodeByte>((first & 15) | (second & 15) << 4);
      if (kFive)
        fifth[i] =
            static_cast<CodeByte>(fifth[i] | (first >> 4) << group | (second >> 4) << (group + 1));
    }
  }
}

constexpr float kNothing = 1e-15f;  // groups of smaller values are stored as zero

// Finds the scale with which codes from -32 to 31 fit the 16 values best. Errors are weighted by
// the squares of the values. Writes the codes of this fit, plus 32, to `codes`.
float fit_signed(const float* x, int* codes) {
  constexpr int kCount = 16, kMost = 32;
  const float extreme = farthest(x, kCount);
  std::fill(codes, codes + kCount, 0);
  if (std::fabs(extreme) < kNothing) return 0.0f;
  std::array<int, kCount> tried;
  const auto sums = [&](float inverse, float& sum_lx, float& sum_l2) {
    sum_lx = sum_l2 = 0;
    for (int i = 0; i < kCount; ++i) {
      tried[i] = std::clamp(nearest(inverse * x[i]), -kMost, kMost - 1);
      const auto code = static_cast<float>(tried[i]);
      const float weight = x[i] * x[i];
      sum_lx += weight * x[i] * code;
      sum_l2 += weight * code * code;
    }
  };
  const auto take = [&] {
    for (int i = 0; i < kCount; ++i) codes[i] = tried[i] + kMost;
  };
  float sum_lx = 0, sum_l2 = 0;
  sums(-static_cast<float>(kMost) / extreme, sum_lx, sum_l2);
  take();
  float scale = sum_l2 != 0 ? sum_lx / sum_l2 : 0.0f;
  float best = scale * sum_lx;
  for (int step = -9; step <= 9; ++step) {
    if (step == 0) continue;
    sums(-(static_cast<float>(kMost) + 0.1f * static_cast<float>(step)) / extreme, sum_lx, sum_l2);
    if (!(sum_l2 > 0 && sum_lx * sum_lx > best * sum_l2)) continue;
    scale = sum_lx / sum_l2;
    best = scale * sum_lx;
    take();
  }
  return scale;
}

void encode_q6_k(const float* x, CodeByte* block) {
  std::array<float, 16> scales;
  std::array<int, 256> codes;
  for (int group = 0; group < 16; ++group)
    scales[group] = fit_signed(x + 16 * group, codes.data() + 16 * group);
  const float extreme = farthest(scales.data(), 16);
  std::fill(block, block + 210, CodeByte{0});
  if (std::fabs(extreme) < kNothing) return;
  const float inverse = -128.0f / extreme;
  const float all = put_half(block + 208, 1 / inverse);
  for (int group = 0; group < 16; ++group) {
    const int own = std::min(127, nearest(inverse * scales[group]));
    block[192 + group] = static_cast<CodeByte>(static_cast<int8_t>(own));
    const float scale = all * static_cast<float>(own);
    if (scale == 0) continue;
    for (int i = 16 * group; i < 16 * (group + 1); ++i)
      codes[i] = std::clamp(nearest(x[i] / scale), -32, 31) + 32;
  }
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 32; ++i) {
      const int* const at = codes.data() + 128 * half + i;
      block[64 * half + i] = static_cast<CodeByte>((at[0] & 15) | (at[64] & 15) << 4);
      block[64 * half + 32 + i] = static_cast<CodeByte>((at[32] & 15) | (at[96] & 15) << 4);
      block[128 + 32 * half + i] = static_cast<CodeByte>(at[0] >> 4 | (at[32] >> 4) << 2 |
                                                         (at[64] >> 4) << 4 | (at[96] >> 4) << 6);
    }
  }
}

using EncodeBlock = void (*)(const float* values, CodeByte* block);

EncodeBlock encoder_of(TensorType type) {
  switch (type) {
    case TensorType::F32:
      return encode_f32;
    case TensorType::F16:
      return encode_f16;
    case TensorType::BF16:
      return encode_bf16;
    case TensorType::Q8_0:
      return encode_q8_0;
    case TensorType::Q4_0:
      return encode_q4_0;
    case TensorType::Q4_1:
      return encode_q4_1;
    case TensorType::Q5_0:
      return encode_q5_0;
    case TensorType::Q5_1:
      return encode_q5_1;
    case TensorType::Q4_K:
      return encode_q45_k<false>;
    case TensorType::Q5_K:
      return encode_q45_k<true>;
    case TensorType::Q6_K:
      return encode_q6_k;
    default:  // these types are only read
      return nullptr;
  }
}

}  // namespace

bool can_encode(TensorType type) { return encoder_of(type) != nullptr; }

void encode(TensorType type, std::span<const float> values, std::span<std::byte> blocks) {
  const TensorTypeInfo& info = info_of(type);
  const EncodeBlock encode_block = encoder_of(type);
  const size_t num_blocks = values.size() / static_cast<size_t>(info.block_values);
  CONVOY_INVARIANT(encode_block != nullptr &&
                       num_blocks * static_cast<size_t>(info.block_values) == values.size() &&
                       num_blocks * static_cast<size_t>(info.block_bytes) == blocks.size(),
                   "{} values as {} in {} bytes", values.size(), info.name, blocks.size());
  CodeByte* block = reinterpret_cast<CodeByte*>(blocks.data());
  const float* value = values.data();
  for (size_t index = 0; index < num_blocks; ++index) {
    encode_block(value, block);
    block += info.block_bytes;
    value += info.block_values;
  }
}

}  // namespace convoy::gguf
