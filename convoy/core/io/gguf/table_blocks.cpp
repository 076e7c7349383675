// SPDX-License-Identifier: Apache-2.0
//
// Layouts, by offsets in a block of 256 values. `d` is the scale in fp16. `qs` are the low bytes of
// indices into a grid, `qh` the bits above the low bytes. An entry of a grid holds 8 or 4 values.
//   iq2_xxs: d, for 32 values four indices, then signs and scale in 32 bits
//   iq2_xs:  d, indices of 9 bits with signs of 7, 16 scales of 4 bits
//   iq2_s:   d, qs, signs, qh, 16 scales of 4 bits
//   iq3_xxs: d, qs, then signs and scale of 32 values in 32 bits
//   iq3_s:   d, qs, qh, signs, 8 scales of 4 bits
//   iq1_s:   d, qs, for 32 values 3 bits above each index, the scale, and the sign of the shift
//   iq1_m:   qs, for 8 values 3 bits above the index and the sign of the shift; in 64 bits 16
//            scales of 3 bits and the parts of d
// The layouts of the other types are described at their functions.
#include "convoy/core/io/gguf/table_blocks.h"

#include <array>
#include <bit>

#include "convoy/core/io/gguf/block_bytes.h"

namespace convoy::gguf {
namespace {

#include "convoy/core/io/gguf/grids.inl"

// The value of each code.
constexpr std::array<float, 4> kIq2Values = {8, 25, 43, 0};
constexpr std::array<float, 8> kIq3XxsValues = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr std::array<float, 8> kIq3SValues = {1, 3, 5, 7, 9, 11, 13, 15};
constexpr std::array<float, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                              1,    13,   25,  38,  53,  69,  89,  113};
constexpr std::array<float, 16> kFloat4Values = {0, 1,  2,  3,  4,  6,  8,  12,
                                                 0, -1, -2, -3, -4, -6, -8, -12};

// Adds the eighth sign to seven signs: it makes the number of negative values even.
uint32_t eight_signs(uint32_t seven) {
  return seven | static_cast<uint32_t>(std::popcount(seven) & 1) << 7;
}

float with_sign(float value, uint32_t signs, uint32_t i) {
  return (signs >> i & 1u) != 0 ? -value : value;
}

int nibble(const uint8_t* bytes, int index) { return bytes[index / 2] >> (4 * (index % 2)) & 15; }

void put_iq2(float* out, float scale, uint32_t entry, uint32_t signs) {
  for (uint32_t i = 0; i < 8; ++i)
    out[i] = with_sign(scale * kIq2Values[entry >> (2 * i) & 3u], signs, i);
}

void put_iq3(float* out, float scale, uint32_t entry, const std::array<float, 8>& values,
             uint32_t signs) {
  for (uint32_t i = 0; i < 4; ++i)
    out[i] = with_sign(scale * values[entry >> (3 * i) & 7u], signs, i);
}

// Writes the values -1, 0 and 1, shifted by an eighth.
void put_iq1(float* out, float scale, uint32_t index, bool shifts_down) {
  const uint32_t entry = kIq1SGrid[index];
  for (uint32_t i = 0; i < 8; ++i)
    out[i] = scale *
             (static_cast<float>(entry >> (2 * i) & 3u) - 1.0f + (shifts_down ? -0.125f : 0.125f));
}

// Writes 32 values: the low halves of the bytes give the first 16 values, the high halves the last
// 16.
void put_halves(float* out, float scale, const uint8_t* codes,
                const std::array<float, 16>& values) {
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * values[codes[i] & 15u];
    out[i + 16] = scale * values[codes[i] >> 4u];
  }
}

// Digit `place` of a byte, minus one. byte / 256 is a fraction with five digits in base three.
float third(uint8_t byte, int place) {
  static constexpr std::array<uint8_t, 5> kPowers = {1, 3, 9, 27, 81};
  const auto shifted = static_cast<uint8_t>(byte * kPowers[static_cast<size_t>(place)]);
  return static_cast<float>((shifted * 3 >> 8) - 1);
}

// 2^(exponent - 128), also when the result is a subnormal number.
float half_power(uint8_t exponent) {
  const uint32_t number = exponent;
  return std::bit_cast<float>(number < 2 ? 0x00200000u << number : (number - 1) << 23);
}

}  // namespace

void decode_iq2_xxs(const uint8_t* block, float* out) {
  const float all = half_at(block);
  for (int group = 0; group < 8; ++group) {
    const uint8_t* const indices = block + 2 + 8 * group;
    const uint32_t rest = u32_at(indices + 4);
    const float scale = all * (0.5f + static_cast<float>(rest >> 28)) * 0.25f;
    for (uint32_t part = 0; part < 4; ++part, out += 8)
      put_iq2(out, scale, kIq2XxsGrid[indices[part]], eight_signs(rest >> (7 * part) & 127u));
  }
}

void decode_iq2_xs(const uint8_t* block, float* out) {
  const float all = half_at(block);
  for (int part = 0; part < 32; ++part, out += 8) {
    const uint32_t code = u16_at(block + 2 + 2 * part);
    const float scale = all * (0.5f + static_cast<float>(nibble(block + 66, part / 2))) * 0.25f;
    put_iq2(out, scale, kIq2XsGrid[code & 511u], eight_signs(code >> 9));
  }
}

void decode_iq2_s(const uint8_t* block, float* out) {
  const float all = half_at(block);
  for (int part = 0; part < 32; ++part, out += 8) {
    const int above = block[66 + part / 4] >> (2 * (part % 4)) & 3;
    const float scale = all * (0.5f + static_cast<float>(nibble(block + 74, part / 2))) * 0.25f;
    put_iq2(out, scale, kIq2SGrid[static_cast<size_t>(block[2 + part] | above << 8)],
            block[34 + part]);
  }
}

void decode_iq3_xxs(const uint8_t* block, float* out) {
  const float all = half_at(block);
  for (int group = 0; group < 8; ++group) {
    const uint32_t rest = u32_at(block + 66 + 4 * group);
    const float scale = all * (0.5f + static_cast<float>(rest >> 28)) * 0.5f;
    for (uint32_t part = 0; part < 8; ++part, out += 4) {
      const uint32_t signs = eight_signs(rest >> (7 * (part / 2)) & 127u);
      put_iq3(out, scale, kIq3XxsGrid[block[2 + 8 * group + static_cast<int>(part)]], kIq3XxsValues,
              signs >> (4 * (part % 2)));
    }
  }
}

void decode_iq3_s(const uint8_t* block, float* out) {
  const float all = half_at(block);
  for (int part = 0; part < 64; ++part, out += 4) {
    const int above = block[66 + part / 8] >> (part % 8) & 1;
    const float scale = all * static_cast<float>(1 + 2 * nibble(block + 106, part / 8));
    put_iq3(out, scale, kIq3SGrid[static_cast<size_t>(block[2 + part] | above << 8)], kIq3SValues,
            static_cast<uint32_t>(block[74 + part / 2]) >> (4 * (part % 2)));
  }
}

void decode_iq1_s(const uint8_t* block, float* out) {
  const float all = half_at(block);
  for (int group = 0; group < 8; ++group) {
    const uint32_t rest = u16_at(block + 34 + 2 * group);
    const float scale = all * static_cast<float>(2 * (rest >> 12 & 7u) + 1);
    for (uint32_t part = 0; part < 4; ++part, out += 8) {
      const uint32_t low = block[2 + 4 * group + static_cast<int>(part)];
      put_iq1(out, scale, low | (rest >> (3 * part) & 7u) << 8, (rest & 0x8000u) != 0);
    }
  }
}

void decode_iq1_m(const uint8_t* block, float* out) {
  const uint8_t* const scales = block + 48;
  uint32_t bits = 0;
  for (int part = 0; part < 4; ++part)
    bits |= static_cast<uint32_t>(u16_at(scales + 2 * part) >> 12) << (4 * part);
  const float all = float_of_half(static_cast<uint16_t>(bits));
  for (int part = 0; part < 32; ++part, out += 8) {
    const int rest = nibble(block + 32, part);
    const int three = u16_at(scales + 2 * (part / 8)) >> (3 * (part / 2 % 4)) & 7;
    put_iq1(out, all * static_cast<float>(2 * three + 1),
            static_cast<uint32_t>(block[part] | (rest & 7) << 8), (rest & 8) != 0);
  }
}

// Layout: d, codes of four bits of 32 values.
void decode_iq4_nl(const uint8_t* block, float* out) {
  put_halves(out, half_at(block), block + 2, kIq4Values);
}

// Layout: d, the high two bits of eight scales, their low four bits, codes.
void decode_iq4_xs(const uint8_t* block, float* out) {
  const float all = half_at(block);
  for (int group = 0; group < 8; ++group) {
    const int scale = nibble(block + 4, group) | (u16_at(block + 2) >> (2 * group) & 3) << 4;
    put_halves(out + 32 * group, all * static_cast<float>(scale - 32), block + 8 + 16 * group,
               kIq4Values);
  }
}

// Layout: 48 bytes with five values each, four bytes with four values each, d.
void decode_tq1_0(const uint8_t* block, float* out) {
  const float scale = half_at(block + 52);
  const auto put = [&](const uint8_t* bytes, int count, int digits) {
    for (int digit = 0; digit < digits; ++digit)
      for (int i = 0; i < count; ++i) *out++ = third(bytes[i], digit) * scale;
  };
  put(block, 32, 5);
  put(block + 32, 16, 5);
  put(block + 48, 4, 4);
}

// Layout: 64 bytes with four values each, d.
void decode_tq2_0(const uint8_t* block, float* out) {
  const float scale = half_at(block + 64);
  for (int plane = 0; plane < 8; ++plane)
    for (int i = 0; i < 32; ++i)
      *out++ =
          static_cast<float>((block[32 * (plane / 4) + i] >> (2 * (plane % 4)) & 3) - 1) * scale;
}

// Layout: the exponent of a power of two, codes of four bits of 32 values.
void decode_mxfp4(const uint8_t* block, float* out) {
  put_halves(out, half_power(block[0]), block + 1, kFloat4Values);
}

}  // namespace convoy::gguf
