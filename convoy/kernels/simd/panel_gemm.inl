// SPDX-License-Identifier: Apache-2.0
//
// GEMM over a packed B: C [m, n] = A [m, k] B [k, n] in fp32 accumulation. A panel holds
// kPanelColumns columns for all k; with bf16 two k values of a column lie together, as the
// dot-product instruction wants them. kBlockRows rows of a panel are kept in registers:
// enough to hide the latency of one or two multipliers. See vector16.inl.

template <class Element>
constexpr int64_t kPair = sizeof(Element) == 2 ? 2 : 1;

#if CONVOY_SIMD_LEVEL >= 2
constexpr int64_t kBlockRows = 8;
#elif CONVOY_SIMD_LEVEL >= 1
constexpr int64_t kBlockRows = 3;
#else
constexpr int64_t kBlockRows = 1;
#endif

// What one register holds: sums in wider vectors would live in memory.
#if CONVOY_SIMD_LEVEL >= 2
constexpr int64_t kRegisterLanes = 16;
#elif CONVOY_SIMD_LEVEL >= 1
constexpr int64_t kRegisterLanes = 8;
#else
constexpr int64_t kRegisterLanes = 4;
#endif
constexpr int64_t kRegistersOfRow = kPanelColumns / kRegisterLanes;
using RegisterFloats = float __attribute__((vector_size(4 * kRegisterLanes)));
using RegisterWords = uint32_t __attribute__((vector_size(4 * kRegisterLanes)));

template <class Register, class From>
CONVOY_INLINE Register load_register(const From* from) {
  Register value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

// a: one float of a row. b: columns at the same k.
CONVOY_INLINE RegisterFloats multiply_add(RegisterFloats c, const float* a, const float* b) {
  return c + *a * load_register<RegisterFloats>(b);
}

// a: two bf16 of a row. b: columns of the same two k, interleaved.
#if CONVOY_SIMD_LEVEL >= 3
CONVOY_INLINE RegisterFloats multiply_add(RegisterFloats c, const c10::BFloat16* a,
                                          const c10::BFloat16* b) {
  int32_t pair;
  __builtin_memcpy(&pair, a, sizeof pair);
  return reinterpret_cast<RegisterFloats>(_mm512_dpbf16_ps(
      reinterpret_cast<__m512>(c), reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair)),
      reinterpret_cast<__m512bh>(_mm512_loadu_si512(b))));
}
#else
CONVOY_INLINE RegisterFloats multiply_add(RegisterFloats c, const c10::BFloat16* a,
                                          const c10::BFloat16* b) {
  const auto pairs = load_register<RegisterWords>(b);
  c += static_cast<float>(a[0]) * reinterpret_cast<RegisterFloats>(pairs << 16);
  return c + static_cast<float>(a[1]) * reinterpret_cast<RegisterFloats>(pairs & 0xffff0000u);
}
#endif

template <class Element, int64_t rows>
inline void multiply_block(const Element* a, int64_t stride_a, const Element* panel, float* c,
                           int64_t stride_c, int64_t k, bool accumulate) {
  constexpr int64_t pair = kPair<Element>;
  constexpr int64_t step = kPanelColumns * pair;
  RegisterFloats sums[rows][kRegistersOfRow];
  // Every loop over rows and registers must unroll, or the sums leave their registers.
#pragma GCC unroll 8
  for (int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 8
    for (int64_t part = 0; part < kRegistersOfRow; ++part)
      sums[row][part] = accumulate ? load_register<RegisterFloats>(c + row * stride_c +
                                                                   part * kRegisterLanes)
                                   : RegisterFloats{};
  }
  const int64_t whole = k / pair * pair;
  for (int64_t at = 0; at < whole; at += pair, panel += step) {
#pragma GCC unroll 8
    for (int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 8
      for (int64_t part = 0; part < kRegistersOfRow; ++part)
        sums[row][part] = multiply_add(sums[row][part], a + row * stride_a + at,
                                       panel + part * kRegisterLanes * pair);
    }
  }
  if (whole < k) {
#pragma GCC unroll 8
    for (int64_t row = 0; row < rows; ++row) {
      const Element last[2] = {a[row * stride_a + whole], Element(0.0f)};
#pragma GCC unroll 8
      for (int64_t part = 0; part < kRegistersOfRow; ++part)
        sums[row][part] =
            multiply_add(sums[row][part], last, panel + part * kRegisterLanes * pair);
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

// The last, smaller block of rows.
template <class Element, int64_t rows>
inline void multiply_rest(int64_t rest, const Element* a, int64_t stride_a, const Element* panel,
                          float* c, int64_t stride_c, int64_t k, bool accumulate) {
  if constexpr (rows > 0) {
    if (rest == rows)
      return multiply_block<Element, rows>(a, stride_a, panel, c, stride_c, k, accumulate);
    multiply_rest<Element, rows - 1>(rest, a, stride_a, panel, c, stride_c, k, accumulate);
  }
}

template <class Element>
void multiply(const Element* a, int64_t stride_a, PackedView<Element> b, float* c, int64_t stride_c,
              GemmShape shape, bool accumulate) {
  const Element* panel = b.panels;
  for (int64_t column = 0; column < shape.n; column += kPanelColumns, panel += b.panel_stride) {
    int64_t row = 0;
    for (; row + kBlockRows <= shape.m; row += kBlockRows) {
      multiply_block<Element, kBlockRows>(a + row * stride_a, stride_a, panel,
                                          c + row * stride_c + column, stride_c, shape.k,
                                          accumulate);
    }
    multiply_rest<Element, kBlockRows - 1>(shape.m - row, a + row * stride_a, stride_a, panel,
                                           c + row * stride_c + column, stride_c, shape.k,
                                           accumulate);
  }
}

// Two rows of floats as one row of interleaved bf16.
CONVOY_INLINE void store_pairs(c10::BFloat16* to, Floats first, Floats second) {
  const Words words = (rounded_words(first) >> 16) | (rounded_words(second) & 0xffff0000u);
  __builtin_memcpy(to, &words, sizeof words);
}
CONVOY_INLINE void store_pairs(float* to, Floats first, Floats) { store(to, first); }

template <class From, class Element>
void pack_rows_from(const From* b, int64_t stride, GemmShape shape, Element* packed) {
  constexpr int64_t pair = kPair<Element>;
  for (int64_t column = 0; column < shape.n; column += kPanelColumns) {
    for (int64_t k = 0; k < shape.k; k += pair) {
      for (int64_t half = 0; half < kPanelColumns; half += kLanes, packed += kLanes * pair) {
        const int64_t count = shape.n - column - half;
        const From* first = b + k * stride + column + half;
        const bool paired = pair == 2 && k + 1 < shape.k;
        if (count >= kLanes) {
          store_pairs(packed, load(first), paired ? load(first + stride) : Floats{});
        } else {
          store_pairs(packed, load_part(first, count),
                      paired ? load_part(first + stride, count) : Floats{});
        }
      }
    }
  }
}

#if CONVOY_SIMD_LEVEL >= 2
// Sixteen rows of sixteen words become sixteen columns: each step exchanges halves of two vectors.
template <int32_t half, int32_t... lanes>
CONVOY_INLINE void exchange_pair(Ints& first, Ints& second,
                                 std::integer_sequence<int32_t, lanes...>) {
  constexpr auto source = [](int32_t lane) {
    return (lane & half) == 0 ? lane : lane - half + static_cast<int32_t>(kLanes);
  };
  const Ints low = __builtin_shuffle(first, second, Ints{source(lanes)...});
  second = __builtin_shuffle(first, second, Ints{source(lanes) + half...});
  first = low;
}
template <int32_t half>
CONVOY_INLINE void exchange_halves(Ints* rows) {
#pragma GCC unroll 16
  for (int32_t at = 0; at < kLanes; ++at) {
    if ((at & half) == 0)
      exchange_pair<half>(rows[at], rows[at + half], std::make_integer_sequence<int32_t, kLanes>());
  }
}
CONVOY_INLINE void transpose(Ints* rows) {
  exchange_halves<8>(rows);
  exchange_halves<4>(rows);
  exchange_halves<2>(rows);
  exchange_halves<1>(rows);
}

// A word of a panel is one fp32, or two bf16 of one column.
template <class Element>
void pack_columns(const Element* b_t, int64_t stride, GemmShape shape, Element* packed) {
  constexpr int64_t pair = kPair<Element>;
  constexpr int64_t kTile = kLanes * pair;  // k of sixteen words
  const int64_t padded_k = round_up(shape.k, pair);
  const int64_t tiled = shape.k / kTile * kTile;
  for (int64_t column = 0; column < shape.n; column += kLanes) {
    const int64_t present = std::min(kLanes, shape.n - column);
    const Element* from = b_t + column * stride;
    Element* to = packed + column / kPanelColumns * kPanelColumns * padded_k +
                  column % kPanelColumns * pair;
    for (int64_t k = 0; k < tiled; k += kTile) {
      Ints words[kLanes]{};
#pragma GCC unroll 16
      for (int64_t lane = 0; lane < kLanes; ++lane)
        if (lane < present) __builtin_memcpy(words + lane, from + lane * stride + k, sizeof(Ints));
      transpose(words);
#pragma GCC unroll 16
      for (int64_t word = 0; word < kLanes; ++word)
        __builtin_memcpy(to + (k + word * pair) * kPanelColumns, words + word, sizeof(Ints));
    }
    for (int64_t k = tiled; k < shape.k; ++k) {
      for (int64_t lane = 0; lane < kLanes; ++lane)
        to[k / pair * pair * kPanelColumns + lane * pair + k % pair] =
            lane < present ? from[lane * stride + k] : Element(0.0f);
    }
    if (shape.k == padded_k) continue;
    for (int64_t lane = 0; lane < kLanes; ++lane)
      to[(padded_k - pair) * kPanelColumns + lane * pair + 1] = Element(0.0f);
  }
  if (shape.n % kPanelColumns == 0 || shape.n % kPanelColumns > kLanes) return;
  // The second half of the last panel holds no column.
  Element* last = packed + shape.n / kPanelColumns * kPanelColumns * padded_k;
  for (int64_t k = 0; k < padded_k; k += pair)
    std::fill_n(last + k * kPanelColumns + kLanes * pair, kLanes * pair, Element(0.0f));
}
#else
// Columns lie strided in a panel; a tile of k keeps the panel lines that it writes in cache.
template <class Element>
void pack_columns(const Element* b_t, int64_t stride, GemmShape shape, Element* packed) {
  constexpr int64_t pair = kPair<Element>;
  constexpr int64_t kTile = 32;
  const int64_t padded_k = round_up(shape.k, pair);
  const int64_t whole = shape.k / pair * pair;
  for (int64_t column = 0; column < shape.n;
       column += kPanelColumns, packed += kPanelColumns * padded_k) {
    const int64_t present = std::min(kPanelColumns, shape.n - column);
    if (present < kPanelColumns || whole < shape.k)
      std::fill(packed, packed + kPanelColumns * padded_k, Element(0.0f));
    for (int64_t begin = 0; begin < whole; begin += kTile) {
      const int64_t end = std::min(begin + kTile, whole);
      for (int64_t lane = 0; lane < present; ++lane) {
        const Element* from = b_t + (column + lane) * stride;
        for (int64_t k = begin; k < end; k += pair) {
          __builtin_memcpy(packed + k * kPanelColumns + lane * pair, from + k,
                           pair * sizeof(Element));
        }
      }
    }
    if (whole == shape.k) continue;
    for (int64_t lane = 0; lane < present; ++lane) {
      packed[whole * kPanelColumns + lane * pair] = b_t[(column + lane) * stride + whole];
    }
  }
}
#endif
