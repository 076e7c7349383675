// SPDX-License-Identifier: Apache-2.0
//
// Products with codes of a quantised weight. For few rows codes are decoded in registers, for many
// rows to a panel. A word holds the codes of one column for successive k: four bytes, or eight
// nibbles with even k in its lower half. Codes are whole numbers, so bf16 holds them; the caller
// applies the scales. See panel_gemm.inl.

// Code `place` (of k) of each word, sign extended.
template <int bits>
CONVOY_INLINE RegisterFloats decode(RegisterWords words, int place) {
  const int shift = bits == 8 ? 8 * place : 4 * (place / 2) + 16 * (place % 2);
  const auto code = reinterpret_cast<RegisterInts>(words << (32 - bits - shift)) >> (32 - bits);
  return __builtin_convertvector(code, RegisterFloats);
}

#if CONVOY_SIMD_LEVEL >= 2
// The value of each nibble.
constexpr float kNibbleFloats[16] = {0.0f,  1.0f,  2.0f,  3.0f,  4.0f,  5.0f,  6.0f,  7.0f,
                                     -8.0f, -7.0f, -6.0f, -5.0f, -4.0f, -3.0f, -2.0f, -1.0f};
template <>
CONVOY_INLINE RegisterFloats decode<4>(RegisterWords words, int place) {
  const RegisterWords nibbles = words >> (4 * (place / 2) + 16 * (place % 2));
  return reinterpret_cast<RegisterFloats>(_mm512_maskz_permutexvar_ps(
      0xffff, reinterpret_cast<__m512i>(nibbles), _mm512_loadu_ps(kNibbleFloats)));
}
#endif

// The factors of a row's two elements.
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
// The two bytes of the numbers 0 to 127 in bf16. -128, whose magnitude would have the index of 0,
// is no code of a weight, a key or a value.
struct ByteValues {
  uint8_t lower[128] = {};
  uint8_t upper[128] = {};
};
constexpr ByteValues make_byte_values() {
  ByteValues values;
  for (uint32_t magnitude = 1; magnitude < 128; ++magnitude) {
    uint32_t exponent = 0;
    while (magnitude >> (exponent + 1) != 0) ++exponent;
    const uint32_t bits = (127 + exponent) << 7 | ((magnitude << (7 - exponent)) & 0x7fu);
    values.lower[magnitude] = static_cast<uint8_t>(bits & 0xffu);
    values.upper[magnitude] = static_cast<uint8_t>(bits >> 8);
  }
  return values;
}
constexpr ByteValues kByteValues = make_byte_values();
// The order of bytes that joins the values of a pair of codes: indices below 64 take lower bytes,
// indices from 64 on take upper bytes.
struct PairOrder {
  uint8_t order[64] = {};
};
constexpr PairOrder make_pair_order(int place) {
  PairOrder pair;
  for (int at = 0; at < 64; ++at)
    pair.order[at] = static_cast<uint8_t>(at / 4 * 4 + place + at % 4 / 2 + (at % 2) * 64);
  return pair;
}
constexpr PairOrder kFirstPair = make_pair_order(0);
constexpr PairOrder kSecondPair = make_pair_order(2);
template <>
struct PairDecoder<c10::BFloat16, 8> {
  // Signs and the two bytes of a magnitude's bf16, from tables of 128 bytes, then joined.
  static CONVOY_INLINE RegisterWords decode_pair(RegisterWords words, int place) {
    const auto codes = reinterpret_cast<__m512i>(words);
    const __m512i magnitudes = _mm512_abs_epi8(codes);
    const __m512i lower = by_magnitude(kByteValues.lower, magnitudes);
    // upper | (codes & 0x80)
    const __m512i upper = _mm512_ternarylogic_epi32(by_magnitude(kByteValues.upper, magnitudes),
                                                    codes, _mm512_set1_epi8(-128), 0xf8);
    const uint8_t* order = place == 0 ? kFirstPair.order : kSecondPair.order;
    return reinterpret_cast<RegisterWords>(
        _mm512_permutex2var_epi8(lower, _mm512_loadu_si512(order), upper));
  }
  static CONVOY_INLINE __m512i by_magnitude(const uint8_t* table, __m512i magnitudes) {
    return _mm512_permutex2var_epi8(_mm512_loadu_si512(table), magnitudes,
                                    _mm512_loadu_si512(table + 64));
  }
};
// bf16 by nibble. The fifth bit of the index belongs to the next nibble, so each value is in the
// table twice.
constexpr uint16_t kNibbleValues[32] = {
    0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0xc100, 0xc0e0, 0xc0c0,
    0xc0a0, 0xc080, 0xc040, 0xc000, 0xbf80, 0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0,
    0x40c0, 0x40e0, 0xc100, 0xc0e0, 0xc0c0, 0xc0a0, 0xc080, 0xc040, 0xc000, 0xbf80};
template <>
struct PairDecoder<c10::BFloat16, 4> {
  static CONVOY_INLINE RegisterWords decode_pair(RegisterWords words, int place) {
    constexpr __mmask32 kAllLanes = 0xffffffffu;
    return reinterpret_cast<RegisterWords>(
        _mm512_maskz_permutexvar_epi16(kAllLanes, reinterpret_cast<__m512i>(words >> (2 * place)),
                                       _mm512_loadu_si512(kNibbleValues)));
  }
};
#endif

// Prefetches `registers` registers of codes that are read `bytes` from here. The hardware's own
// prefetch comes too late where products take longer than reading.
template <int64_t bytes, int64_t registers = kRegistersOfRow>
CONVOY_INLINE void fetch_ahead(const uint32_t* codes) {
  constexpr int64_t kAhead = bytes / sizeof(uint32_t);
  constexpr int64_t kLine = 16;
#pragma GCC unroll 2
  for (int64_t at = 0; at < registers * kRegisterLanes; at += kLine)
    __builtin_prefetch(codes + kAhead + at);
}

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
      sums[row][part] =
          accumulate ? load_register<RegisterFloats>(c + row * stride_c + part * kRegisterLanes)
                     : RegisterFloats{};
  }
  int64_t at = 0;
  for (; at + kPerWord <= k; at += kPerWord, codes += kPanelColumns) {
    if constexpr (rows > 1) fetch_ahead<2048>(codes);  // one row reads as fast as it can
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
      const auto pair =
          Decoder::decode_pair(load_register<RegisterWords>(codes + part * kRegisterLanes), place);
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

// Number of k whose unpacked panel stays in the nearest cache while the next codes are fetched.
constexpr int64_t kUnpackedInner = 256;

template <class Element, int bits>
void unpack_codes(const uint32_t* codes, int64_t k, Element* panel) {
  constexpr int64_t kPerWord = 32 / bits;
  for (int64_t at = 0; at < k; at += kPerWord, codes += kPanelColumns) {
    fetch_ahead<kUnpackedInner * kPanelColumns * bits / 8>(codes);
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
          if (at + place + 1 < k)
            __builtin_memcpy(to + kPanelColumns, &pair.second, sizeof pair.second);
        } else {
          const RegisterWords rounded = as_bf16(pair);
          __builtin_memcpy(to, &rounded, sizeof rounded);
        }
      }
    }
  }
}

#if CONVOY_SIMD_LEVEL < 3
// bf16 rows are widened as for products of bf16.
template <class Element>
void multiply_unpacked_bytes(const Element* a, int64_t stride_a, CodedView b, float* c,
                             int64_t stride_c, GemmShape shape, bool accumulate) {
  alignas(64) float widened[kWidenedRows * kWidenedInner];
  alignas(64) float panel[kWidenedInner * kPanelColumns];
  for (int64_t row = 0; row < shape.m; row += kWidenedRows) {
    const int64_t height = std::min(kWidenedRows, shape.m - row);
    for (int64_t k = 0; k == 0 || k < shape.k; k += kWidenedInner) {
      const int64_t depth = std::min(kWidenedInner, shape.k - k);
      const FloatRows rows = float_rows(a + row * stride_a + k, stride_a, {height, depth}, widened);
      for (int64_t column = 0; column < shape.n; column += kPanelColumns) {
        unpack_codes<float, 8>(
            b.codes + column / kPanelColumns * b.panel_stride + k / 4 * kPanelColumns, depth,
            panel);
        multiply_panels<float>(rows.values, rows.stride, {panel, 0},
                               c + row * stride_c + column, stride_c,
                               {height, std::min(kPanelColumns, shape.n - column), depth},
                               accumulate || k > 0);
      }
    }
  }
}
#else
template <class Element>
void multiply_unpacked_bytes(const Element* a, int64_t stride_a, CodedView b, float* c,
                             int64_t stride_c, GemmShape shape, bool accumulate) {
  alignas(64) Element panel[kUnpackedInner * kPanelColumns];
  for (int64_t column = 0; column < shape.n; column += kPanelColumns, c += kPanelColumns) {
    const uint32_t* codes = b.codes + column / kPanelColumns * b.panel_stride;
    for (int64_t k = 0; k == 0 || k < shape.k; k += kUnpackedInner) {
      const int64_t depth = std::min(kUnpackedInner, shape.k - k);
      unpack_codes<Element, 8>(codes + k / 4 * kPanelColumns, depth, panel);
      multiply<Element>(a + k, stride_a, {panel, panel_elements<Element>(depth)}, c, stride_c,
                        {shape.m, std::min(kPanelColumns, shape.n - column), depth},
                        accumulate || k > 0);
    }
  }
}
#endif

// Up to one block of rows decodes the codes in registers. For more rows the codes are unpacked
// first. The bits are the same.
template <class Element>
void multiply_bytes(const Element* a, int64_t stride_a, CodedView b, float* c, int64_t stride_c,
                    GemmShape shape, bool accumulate) {
  if (shape.m > kBlockRows)
    return multiply_unpacked_bytes(a, stride_a, b, c, stride_c, shape, accumulate);
  for (int64_t column = 0; column < shape.n; column += kPanelColumns, c += kPanelColumns)
    coded_rest<Element, 8, kBlockRows>(shape.m, a, stride_a,
                                       b.codes + column / kPanelColumns * b.panel_stride, c,
                                       stride_c, shape.k, accumulate);
}

// a * b + c, fused by an intrinsic where there is one. The compiler itself fuses only within a
// basic block, so a sum's bits would depend on the loop around it.
CONVOY_INLINE RegisterFloats fused(RegisterFloats a, RegisterFloats b, RegisterFloats c) {
#if CONVOY_SIMD_LEVEL >= 2
  return reinterpret_cast<RegisterFloats>(_mm512_fmadd_ps(
      reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
#elif CONVOY_SIMD_LEVEL >= 1
  return reinterpret_cast<RegisterFloats>(_mm256_fmadd_ps(
      reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(c)));
#else
  return c + a * b;
#endif
}

// The scales and offsets of a group for one register of columns. add() adds the offset's part
// first, so that an element has the same bits wherever its sum comes from.
struct GroupScale {
  CONVOY_INLINE GroupScale(const NibbleGroups& groups, int64_t group, int64_t part) {
    const int64_t at = group * kPanelColumns + part * kRegisterLanes;
    scale = load_wide(groups.scales + at);
    if (groups.offsets != nullptr) offset = load_wide(groups.offsets + at);
  }
  CONVOY_INLINE RegisterFloats add(RegisterFloats to, const float* row_sum,
                                   RegisterFloats sum) const {
    if (row_sum != nullptr) to = fused(offset, *row_sum - RegisterFloats{}, to);
    return fused(scale, sum, to);
  }
  RegisterFloats scale;
  RegisterFloats offset{};
};
inline const float* row_sum_at(const NibbleGroups& groups, int64_t row, int64_t group) {
  return groups.offsets == nullptr ? nullptr
                                   : groups.row_sums + row * groups.row_sums_stride + group;
}

// Registers of a row whose sums of a group are kept at a time: all where sums and totals leave
// half of the registers free.
template <int64_t rows>
constexpr int64_t kPartsTogether = 2 * rows * kRegistersOfRow <= kRegisters / 2 ? kRegistersOfRow
                                                                                : 1;

// Sums of one group, from its first codes on.
template <class Element, int64_t rows, int64_t parts>
CONVOY_INLINE void add_nibbles(const Element* a, int64_t stride_a, const uint32_t* codes,
                               int64_t count, RegisterFloats (&sums)[rows][parts]) {
  constexpr int64_t kPerWord = 8;
  int64_t at = 0;
  for (; at + kPerWord <= count; at += kPerWord, codes += kPanelColumns) {
    fetch_ahead<2048, parts>(codes);
#pragma GCC unroll 8
    for (int64_t part = 0; part < parts; ++part) {
      const auto words = load_register<RegisterWords>(codes + part * kRegisterLanes);
#pragma GCC unroll 4
      for (int place = 0; place < kPerWord; place += 2) {
        const auto pair = PairDecoder<Element, 4>::decode_pair(words, place);
#pragma GCC unroll 8
        for (int64_t row = 0; row < rows; ++row)
          sums[row][part] = multiply_pair(sums[row][part], a + row * stride_a + at + place, pair);
      }
    }
  }
  for (int place = 0; at + place < count; place += 2) {
#pragma GCC unroll 8
    for (int64_t part = 0; part < parts; ++part) {
      const auto pair = PairDecoder<Element, 4>::decode_pair(
          load_register<RegisterWords>(codes + part * kRegisterLanes), place);
#pragma GCC unroll 8
      for (int64_t row = 0; row < rows; ++row) {
        const Element* from = a + row * stride_a + at + place;
        const Element both[2] = {from[0], at + place + 1 < count ? from[1] : Element(0.0f)};
        sums[row][part] = multiply_pair(sums[row][part], both, pair);
      }
    }
  }
}

// Decodes the nibbles for some rows together, in registers. Decoding is hidden behind the products
// of these rows, and so is scaling a group, which took a fifth of the product when it went through
// memory. Not inlined, because registers would be spilt otherwise.
template <class Element, int64_t rows>
__attribute__((noinline)) void nibble_block(const Element* a, int64_t stride_a,
                                            const uint32_t* codes, const NibbleGroups& groups,
                                            float* c, int64_t stride_c, int64_t k,
                                            bool accumulate) {
  constexpr int64_t kTogether = kPartsTogether<rows>;
  RegisterFloats totals[rows][kRegistersOfRow];
#pragma GCC unroll 8
  for (int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 8
    for (int64_t part = 0; part < kRegistersOfRow; ++part)
      totals[row][part] =
          accumulate ? load_register<RegisterFloats>(c + row * stride_c + part * kRegisterLanes)
                     : RegisterFloats{};
  }
  for (int64_t group = 0, first = 0; first < k; ++group, first += groups.inputs) {
    const uint32_t* of_group = codes + first / 8 * kPanelColumns;
#pragma GCC unroll 8
    for (int64_t part = 0; part < kRegistersOfRow; part += kTogether) {
      RegisterFloats sums[rows][kTogether]{};
      add_nibbles(a + first, stride_a, of_group + part * kRegisterLanes,
                  std::min(groups.inputs, k - first), sums);
#pragma GCC unroll 8
      for (int64_t at = 0; at < kTogether; ++at) {
        const GroupScale scale(groups, group, part + at);
#pragma GCC unroll 8
        for (int64_t row = 0; row < rows; ++row)
          totals[row][part + at] =
              scale.add(totals[row][part + at], row_sum_at(groups, row, group), sums[row][at]);
      }
    }
  }
#pragma GCC unroll 8
  for (int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 8
    for (int64_t part = 0; part < kRegistersOfRow; ++part)
      __builtin_memcpy(c + row * stride_c + part * kRegisterLanes, &totals[row][part],
                       sizeof totals[row][part]);
  }
}

template <class Element, int64_t rows>
inline void nibble_rows(int64_t count, const Element* a, int64_t stride_a, const uint32_t* codes,
                        const NibbleGroups& groups, float* c, int64_t stride_c, int64_t k,
                        bool accumulate) {
  if constexpr (rows > 0) {
    if (count == rows)
      return nibble_block<Element, rows>(a, stride_a, codes, groups, c, stride_c, k, accumulate);
    nibble_rows<Element, rows - 1>(count, a, stride_a, codes, groups, c, stride_c, k, accumulate);
  }
}

#if CONVOY_SIMD_LEVEL < 2
// With few registers a block has few rows, so decoding for each block took longer than the
// products. For more rows a group is unpacked once. The bits are the same.
constexpr int64_t kFewestUnpackedRows = kBlockRows + 1;

// Adds one group's part of the sums of some rows.
template <int64_t rows>
inline void add_group(FloatRows a, const float* panel, int64_t count, const NibbleGroups& groups,
                      int64_t group, float* c, int64_t stride_c) {
  RegisterFloats sums[rows][kRegistersOfRow];
#pragma GCC unroll 8
  for (int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 8
    for (int64_t part = 0; part < kRegistersOfRow; ++part) sums[row][part] = RegisterFloats{};
  }
  for (int64_t at = 0; at < count; ++at, panel += kPanelColumns) {
#pragma GCC unroll 8
    for (int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 8
      for (int64_t part = 0; part < kRegistersOfRow; ++part)
        sums[row][part] = multiply_add(sums[row][part], a.values + row * a.stride + at,
                                       panel + part * kRegisterLanes);
    }
  }
#pragma GCC unroll 8
  for (int64_t part = 0; part < kRegistersOfRow; ++part) {
    const GroupScale scale(groups, group, part);
#pragma GCC unroll 8
    for (int64_t row = 0; row < rows; ++row) {
      float* to = c + row * stride_c + part * kRegisterLanes;
      const RegisterFloats total = scale.add(load_register<RegisterFloats>(to),
                                             row_sum_at(groups, row, group), sums[row][part]);
      __builtin_memcpy(to, &total, sizeof total);
    }
  }
}

template <class Element>
void multiply_unpacked_nibbles(const Element* a, int64_t stride_a, CodedView b,
                               const NibbleGroups& groups, float* c, int64_t stride_c,
                               GemmShape shape) {
  alignas(64) float widened[kWidenedRows * kWidenedInner];
  alignas(64) float panel[kWidenedInner / 2 * kPanelColumns];
  for (int64_t row = 0; row < shape.m; row += kWidenedRows) {
    const int64_t height = std::min(kWidenedRows, shape.m - row);
    for (int64_t k = 0; k < shape.k; k += groups.inputs) {
      const int64_t depth = std::min(groups.inputs, shape.k - k);
      const FloatRows rows = float_rows(a + row * stride_a + k, stride_a, {height, depth}, widened);
      for (int64_t column = 0; column < shape.n; column += kPanelColumns) {
        unpack_codes<float, 4>(
            b.codes + column / kPanelColumns * b.panel_stride + k / 8 * kPanelColumns, depth,
            panel);
        const NibbleGroups of_panel = groups.from_column(column);
        const auto add = [&](auto block, int64_t at) {
          add_group<decltype(block)::value>(
              {rows.values + at * rows.stride, rows.stride}, panel, depth,
              of_panel.from_row(row + at), k / groups.inputs,
              c + (row + at) * stride_c + column, stride_c);
        };
        int64_t at = 0;
        for (; at + kBlockRows <= height; at += kBlockRows)
          add(std::integral_constant<int64_t, kBlockRows>(), at);
        for (; at < height; ++at) add(std::integral_constant<int64_t, 1>(), at);
      }
    }
  }
}
#endif

template <class Element>
void multiply_nibbles(const Element* a, int64_t stride_a, CodedView b, const NibbleGroups& groups,
                      float* c, int64_t stride_c, GemmShape shape, bool accumulate) {
#if CONVOY_SIMD_LEVEL < 2
  if (shape.m >= kFewestUnpackedRows) {
    for (int64_t row = 0; row < shape.m && !accumulate; ++row)
      std::fill_n(c + row * stride_c, round_up(shape.n, kPanelColumns), 0.0f);
    return multiply_unpacked_nibbles(a, stride_a, b, groups, c, stride_c, shape);
  }
#endif
  for (int64_t column = 0; column < shape.n; column += kPanelColumns, c += kPanelColumns) {
    const NibbleGroups of_panel = groups.from_column(column);
    for (int64_t row = 0; row < shape.m; row += kBlockRows)
      nibble_rows<Element, kBlockRows>(std::min(kBlockRows, shape.m - row), a + row * stride_a,
                                       stride_a, b.codes, of_panel.from_row(row),
                                       c + row * stride_c, stride_c, shape.k, accumulate);
    b.codes += b.panel_stride;
  }
}

template <class Element>
void group_sums(const Element* values, int64_t count, int64_t inputs, float* sums) {
  for (int64_t first = 0; first < count; first += inputs) {
    Floats total{};
    for_lanes(std::min(inputs, count - first),
              [&](int64_t at, auto lanes) { total += load_lanes(values + first + at, lanes); });
    *sums++ = sum(total);
  }
}

inline void add_scaled(const float* from, const float* scales, float* c, int64_t stride, int64_t m,
                       int64_t n, bool accumulate) {
  for (int64_t row = 0; row < m; ++row, from += stride, c += stride) {
    for (int64_t at = 0; at < n; at += kLanes) {
      const Floats value = load(from + at) * load(scales + at);
      store(c + at, accumulate ? load(c + at) + value : value);
    }
  }
}
