// SPDX-License-Identifier: Apache-2.0
//
// Layouts, by offsets in a block. `d` and `m` are scale and offset in fp16. `qs` are codes of 4
// bits: the low halves of the bytes hold the first values, the high halves the values after them.
//   q8_0: d, 32 signed bytes            q4_0: d, qs                q4_1: d, m, qs
//   q5_0: d, 32 high bits, qs           q5_1: d, m, 32 high bits, qs
//   K types: 256 values in 8 or 16 groups, with scales of 4 or 6 bits that `d` multiplies.
#include "convoy/core/io/gguf/decode.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "convoy/core/base/error.h"
#include "convoy/core/io/gguf/block_bytes.h"
#include "convoy/core/io/gguf/table_blocks.h"

namespace convoy::gguf {
namespace {

using Byte = uint8_t;

void decode_f32(const Byte* block, float* out) { std::memcpy(out, block, sizeof(float)); }
void decode_f16(const Byte* block, float* out) { *out = half_at(block); }
void decode_bf16(const Byte* block, float* out) { *out = float_of_bfloat(u16_at(block)); }

void decode_q8_0(const Byte* block, float* out) {
  const float scale = half_at(block);
  for (int i = 0; i < 32; ++i)
    out[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * scale;
}

void decode_q4_0(const Byte* block, float* out) {
  const float scale = half_at(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<float>((block[2 + i] & 15) - 8) * scale;
    out[i + 16] = static_cast<float>((block[2 + i] >> 4) - 8) * scale;
  }
}

void decode_q4_1(const Byte* block, float* out) {
  const float scale = half_at(block), offset = half_at(block + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<float>(block[4 + i] & 15) * scale + offset;
    out[i + 16] = static_cast<float>(block[4 + i] >> 4) * scale + offset;
  }
}

// Codes of five bits: four in `low`, the fifth in bit i of `high`.
int five_low(const Byte* low, uint32_t high, int i) {
  return (low[i] & 15) | static_cast<int>((high >> i & 1u) << 4);
}
int five_high(const Byte* low, uint32_t high, int i) {
  return (low[i] >> 4) | static_cast<int>((high >> (i + 16) & 1u) << 4);
}

void decode_q5_0(const Byte* block, float* out) {
  const float scale = half_at(block);
  const uint32_t high = u32_at(block + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<float>(five_low(block + 6, high, i) - 16) * scale;
    out[i + 16] = static_cast<float>(five_high(block + 6, high, i) - 16) * scale;
  }
}

void decode_q5_1(const Byte* block, float* out) {
  const float scale = half_at(block), offset = half_at(block + 2);
  const uint32_t high = u32_at(block + 4);
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<float>(five_low(block + 8, high, i)) * scale + offset;
    out[i + 16] = static_cast<float>(five_high(block + 8, high, i)) * scale + offset;
  }
}

// Layout: 16 bytes with scale and offset of each group, codes of two bits, d, m.
void decode_q2_k(const Byte* block, float* out) {
  const float all = half_at(block + 80), all_offset = half_at(block + 82);
  const Byte* codes = block + 16;
  for (int group = 0; group < 16; ++group) {
    const float scale = all * static_cast<float>(block[group] & 15);
    const float offset = all_offset * static_cast<float>(block[group] >> 4);
    const int shift = 2 * (group / 2 % 4);
    const Byte* const part = codes + 32 * (group / 8) + 16 * (group % 2);
    for (int i = 0; i < 16; ++i)
      *out++ = scale * static_cast<float>((part[i] >> shift) & 3) - offset;
  }
}

// Layout: the third bits of the codes in 32 bytes, the lower two bits of the codes, 16 scales of
// six bits in 12 bytes, d.
void decode_q3_k(const Byte* block, float* out) {
  const float all = half_at(block + 108);
  const Byte* const scales = block + 96;
  for (int group = 0; group < 16; ++group) {
    const int low = group < 8 ? scales[group] & 15 : scales[group - 8] >> 4;
    const int high = (scales[8 + group % 4] >> (2 * (group / 4))) & 3;
    const float scale = all * static_cast<float>((low | high << 4) - 32);
    const int plane = group / 2;  // a plane has 32 values
    const Byte* const part = block + 32 + 32 * (plane / 4) + 16 * (group % 2);
    const Byte* const third = block + 16 * (group % 2);
    for (int i = 0; i < 16; ++i) {
      const int code = (part[i] >> (2 * (plane % 4))) & 3;
      *out++ = scale * static_cast<float>(code - ((third[i] >> plane & 1) != 0 ? 0 : 4));
    }
  }
}

struct GroupScale {
  int scale;
  int offset;
};
// Reads one of eight pairs of scale and offset, six bits each, from 12 bytes.
GroupScale group_scale(const Byte* packed, int group) {
  if (group < 4) return {packed[group] & 63, packed[group + 4] & 63};
  return {(packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4,
          (packed[group + 4] >> 4) | (packed[group] >> 6) << 4};
}

// Layout: d, m, scales of eight groups, in q5_k the fifth bits of the codes, codes.
template <bool kFive>
void decode_q45_k(const Byte* block, float* out) {
  const float all = half_at(block), all_offset = half_at(block + 2);
  const Byte* const fifth = block + 16;
  const Byte* const codes = block + (kFive ? 48 : 16);
  for (int group = 0; group < 8; ++group) {
    const GroupScale own = group_scale(block + 4, group);
    const float scale = all * static_cast<float>(own.scale);
    const float offset = all_offset * static_cast<float>(own.offset);
    const Byte* const part = codes + 32 * (group / 2);
    for (int i = 0; i < 32; ++i) {
      int code = group % 2 == 0 ? part[i] & 15 : part[i] >> 4;
      if (kFive) code += (fifth[i] >> group & 1) << 4;
      *out++ = scale * static_cast<float>(code) - offset;
    }
  }
}

// Layout: the low four bits of the codes, their high two bits, 16 signed scales, d.
void decode_q6_k(const Byte* block, float* out) {
  const float all = half_at(block + 208);
  for (int half = 0; half < 2; ++half) {
    const Byte* const low = block + 64 * half;
    const Byte* const high = block + 128 + 32 * half;
    const Byte* const scales = block + 192 + 8 * half;
    for (int quarter = 0; quarter < 4; ++quarter) {
      for (int i = 0; i < 32; ++i) {
        const int byte = low[32 * (quarter % 2) + i];
        const int code = (quarter < 2 ? byte & 15 : byte >> 4) | ((high[i] >> (2 * quarter)) & 3)
                                                                     << 4;
        const auto scale = static_cast<int8_t>(scales[2 * quarter + i / 16]);
        *out++ = all * static_cast<float>(scale) * static_cast<float>(code - 32);
      }
    }
  }
}

using DecodeBlock = void (*)(const Byte* block, float* out);

DecodeBlock decoder_of(TensorType type) {
  switch (type) {
    case TensorType::F32:
      return decode_f32;
    case TensorType::F16:
      return decode_f16;
    case TensorType::BF16:
      return decode_bf16;
    case TensorType::Q8_0:
      return decode_q8_0;
    case TensorType::Q4_0:
      return decode_q4_0;
    case TensorType::Q4_1:
      return decode_q4_1;
    case TensorType::Q5_0:
      return decode_q5_0;
    case TensorType::Q5_1:
      return decode_q5_1;
    case TensorType::Q2_K:
      return decode_q2_k;
    case TensorType::Q3_K:
      return decode_q3_k;
    case TensorType::Q4_K:
      return decode_q45_k<false>;
    case TensorType::Q5_K:
      return decode_q45_k<true>;
    case TensorType::Q6_K:
      return decode_q6_k;
    case TensorType::IQ2_XXS:
      return decode_iq2_xxs;
    case TensorType::IQ2_XS:
      return decode_iq2_xs;
    case TensorType::IQ2_S:
      return decode_iq2_s;
    case TensorType::IQ3_XXS:
      return decode_iq3_xxs;
    case TensorType::IQ3_S:
      return decode_iq3_s;
    case TensorType::IQ1_S:
      return decode_iq1_s;
    case TensorType::IQ1_M:
      return decode_iq1_m;
    case TensorType::IQ4_NL:
      return decode_iq4_nl;
    case TensorType::IQ4_XS:
      return decode_iq4_xs;
    case TensorType::TQ1_0:
      return decode_tq1_0;
    case TensorType::TQ2_0:
      return decode_tq2_0;
    case TensorType::MXFP4:
      return decode_mxfp4;
  }
  throw StateError(fmt::format("no decoder for type {}", static_cast<uint32_t>(type)));
}

}  // namespace

void decode(TensorType type, std::span<const std::byte> blocks, std::span<float> values) {
  const TensorTypeInfo& info = info_of(type);
  const size_t num_blocks = values.size() / static_cast<size_t>(info.block_values);
  CONVOY_INVARIANT(num_blocks * static_cast<size_t>(info.block_values) == values.size() &&
                       num_blocks * static_cast<size_t>(info.block_bytes) == blocks.size(),
                   "{} values of {} in {} bytes", values.size(), info.name, blocks.size());
  const DecodeBlock decode_block = decoder_of(type);
  const Byte* block = reinterpret_cast<const Byte*>(blocks.data());
  float* out = values.data();
  for (size_t index = 0; index < num_blocks; ++index) {
    decode_block(block, out);
    block += info.block_bytes;
    out += info.block_values;
  }
}

}  // namespace convoy::gguf
