// SPDX-License-Identifier: Apache-2.0
//
// Products with codes of a quantised weight, decoded in registers, and codes decoded to a panel for
// more rows than those are worth. A word holds the codes of one column for successive k: four
// bytes, or eight nibbles, those of even k in its lower half. Codes are whole numbers, so bf16 holds
// them; scales are for the caller. See panel_gemm.inl.

using RegisterInts = int32_t __attribute__((vector_size(4 * kRegisterLanes)));

// Code `place` (of k) of each word, sign extended.
template <int bits>
CONVOY_INLINE RegisterFloats decode(RegisterWords words, int place) {
  const int shift = bits == 8 ? 8 * place : 4 * (place / 2) + 16 * (place % 2);
  const auto code = reinterpret_cast<RegisterInts>(words << (32 - bits - shift)) >> (32 - bits);
  return __builtin_convertvector(code, RegisterFloats);
}

// What a row's two elements are multiplied by.
struct FloatPair {
  RegisterFloats first;
  RegisterFloats second;
};
CONVOY_INLINE RegisterWords as_bf16(FloatPair pair) {
  return (reinterpret_cast<RegisterWords>(pair.first) >> 16) |
         (reinterpret_cast<RegisterWords>(pair.second) & 0xffff0000u);
}
template <class Element>
CONVOY_INLINE RegisterFloats multiply_pair(RegisterFloats c, const Element* a, FloatPair pair) {
  c += static_cast<float>(a[0]) * pair.first;
  return c + static_cast<float>(a[1]) * pair.second;
}
template <class Element, int bits>
struct PairDecoder {
  static CONVOY_INLINE FloatPair decode_pair(RegisterWords words, int place) {
    return {decode<bits>(words, place), decode<bits>(words, place + 1)};
  }
};

#if CONVOY_SIMD_LEVEL >= 3
CONVOY_INLINE RegisterFloats multiply_pair(RegisterFloats c, const c10::BFloat16* a,
                                           RegisterWords pair) {
  int32_t both;
  __builtin_memcpy(&both, a, sizeof both);
  return reinterpret_cast<RegisterFloats>(_mm512_dpbf16_ps(
      reinterpret_cast<__m512>(c), reinterpret_cast<__m512bh>(_mm512_set1_epi32(both)),
      reinterpret_cast<__m512bh>(pair)));
}
CONVOY_INLINE RegisterWords as_bf16(RegisterWords pair) { return pair; }
template <>
struct PairDecoder<c10::BFloat16, 8> {
  static CONVOY_INLINE RegisterWords decode_pair(RegisterWords words, int place) {
    return as_bf16(FloatPair{decode<8>(words, place), decode<8>(words, place + 1)});
  }
};
// bf16 by nibble. The fifth bit of its index is the next nibble's, so it stands there twice.
constexpr uint16_t kNibbleValues[32] = {
    0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0xc100, 0xc0e0, 0xc0c0,
    0xc0a0, 0xc080, 0xc040, 0xc000, 0xbf80, 0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0,
    0x40c0, 0x40e0, 0xc100, 0xc0e0, 0xc0c0, 0xc0a0, 0xc080, 0xc040, 0xc000, 0xbf80};
template <>
struct PairDecoder<c10::BFloat16, 4> {
  static CONVOY_INLINE RegisterWords decode_pair(RegisterWords words, int place) {
    constexpr __mmask32 kAllLanes = 0xffffffffu;
    return reinterpret_cast<RegisterWords>(_mm512_maskz_permutexvar_epi16(
        kAllLanes, reinterpret_cast<__m512i>(words >> (2 * place)),
        _mm512_loadu_si512(kNibbleValues)));
  }
};
#endif

// Rows whose products decode in registers.
constexpr int64_t kCodedRows = kBlockRows;

template <class Element, int bits, int64_t rows>
inline void coded_block(const Element* a, int64_t stride_a, const uint32_t* codes, float* c,
                        int64_t stride_c, int64_t k, bool accumulate) {
  using Decoder = PairDecoder<Element, bits>;
  constexpr int64_t kPerWord = 32 / bits;
  RegisterFloats sums[rows][kRegistersOfRow];
#pragma GCC unroll 8
  for (int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 8
    for (int64_t part = 0; part < kRegistersOfRow; ++part)
      sums[row][part] = accumulate ? load_register<RegisterFloats>(c + row * stride_c +
                                                                   part * kRegisterLanes)
                                   : RegisterFloats{};
  }
  int64_t at = 0;
  for (; at + kPerWord <= k; at += kPerWord, codes += kPanelColumns) {
#pragma GCC unroll 8
    for (int64_t part = 0; part < kRegistersOfRow; ++part) {
      const auto words = load_register<RegisterWords>(codes + part * kRegisterLanes);
#pragma GCC unroll 4
      for (int place = 0; place < kPerWord; place += 2) {
        const auto pair = Decoder::decode_pair(words, place);
#pragma GCC unroll 8
        for (int64_t row = 0; row < rows; ++row)
          sums[row][part] = multiply_pair(sums[row][part], a + row * stride_a + at + place, pair);
      }
    }
  }
  for (int place = 0; at + place < k; place += 2) {
#pragma GCC unroll 8
    for (int64_t part = 0; part < kRegistersOfRow; ++part) {
      const auto pair = Decoder::decode_pair(
          load_register<RegisterWords>(codes + part * kRegisterLanes), place);
#pragma GCC unroll 8
      for (int64_t row = 0; row < rows; ++row) {
        const Element* from = a + row * stride_a + at + place;
        const Element both[2] = {from[0], at + place + 1 < k ? from[1] : Element(0.0f)};
        sums[row][part] = multiply_pair(sums[row][part], both, pair);
      }
    }
  }
#pragma GCC unroll 8
  for (int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 8
    for (int64_t part = 0; part < kRegistersOfRow; ++part)
      __builtin_memcpy(c + row * stride_c + part * kRegisterLanes, &sums[row][part],
                       sizeof sums[row][part]);
  }
}

template <class Element, int bits, int64_t rows>
inline void coded_rest(int64_t rest, const Element* a, int64_t stride_a, const uint32_t* codes,
                       float* c, int64_t stride_c, int64_t k, bool accumulate) {
  if constexpr (rows > 0) {
    if (rest == rows)
      return coded_block<Element, bits, rows>(a, stride_a, codes, c, stride_c, k, accumulate);
    coded_rest<Element, bits, rows - 1>(rest, a, stride_a, codes, c, stride_c, k, accumulate);
  }
}

template <class Element, int bits>
void multiply_codes(const Element* a, int64_t stride_a, const uint32_t* codes, float* c,
                    int64_t stride_c, int64_t m, int64_t k, bool accumulate) {
  int64_t row = 0;
  for (; row + kBlockRows <= m; row += kBlockRows)
    coded_block<Element, bits, kBlockRows>(a + row * stride_a, stride_a, codes, c + row * stride_c,
                                           stride_c, k, accumulate);
  coded_rest<Element, bits, kBlockRows - 1>(m - row, a + row * stride_a, stride_a, codes,
                                            c + row * stride_c, stride_c, k, accumulate);
}

template <class Element, int bits>
void unpack_codes(const uint32_t* codes, int64_t k, Element* panel) {
  constexpr int64_t kPerWord = 32 / bits;
  for (int64_t at = 0; at < k; at += kPerWord, codes += kPanelColumns) {
#pragma GCC unroll 8
    for (int64_t part = 0; part < kRegistersOfRow; ++part) {
      const auto words = load_register<RegisterWords>(codes + part * kRegisterLanes);
#pragma GCC unroll 4
      for (int place = 0; place < kPerWord; place += 2) {
        if (at + place >= k) break;
        const auto pair = PairDecoder<Element, bits>::decode_pair(words, place);
        Element* to = panel + (at + place) * kPanelColumns + part * kRegisterLanes * kPair<Element>;
        if constexpr (std::is_same_v<Element, float>) {
          __builtin_memcpy(to, &pair.first, sizeof pair.first);
          if (at + place + 1 < k) __builtin_memcpy(to + kPanelColumns, &pair.second, sizeof pair.second);
        } else {
          const RegisterWords rounded = as_bf16(pair);
          __builtin_memcpy(to, &rounded, sizeof rounded);
        }
      }
    }
  }
}

inline void add_scaled_panel(const float* from, const ColumnScales& scales, const float* row_sums,
                             int64_t row_sums_stride, float* c, int64_t stride_c, int64_t m,
                             bool accumulate) {
  for (int64_t row = 0; row < m; ++row, from += kPanelColumns, c += stride_c) {
    for (int64_t at = 0; at < kPanelColumns; at += kLanes) {
      Floats value = load(from + at) * load(scales.scales + at);
      if (row_sums != nullptr) value += load(scales.offsets + at) * row_sums[row * row_sums_stride];
      store(c + at, accumulate ? load(c + at) + value : value);
    }
  }
}
