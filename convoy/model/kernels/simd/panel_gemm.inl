// SPDX-License-Identifier: Apache-2.0
//
// GEMM over a packed B: C [m, n] = A [m, k] B [k, n] in fp32 accumulation. A panel holds
// kPanelColumns columns for all k; with bf16 two k values of a column lie together, as the
// dot-product instruction wants them. The sums of a block of rows and columns are kept in
// registers: enough to hide the latency of one or two multipliers. See vector16.inl.

template <class Element>
constexpr int64_t kPair = sizeof(Element) == 2 ? 2 : 1;

// Rows of a block that has all columns of a panel.
#if CONVOY_SIMD_LEVEL >= 2
constexpr int64_t kBlockRows = 8;
#elif CONVOY_SIMD_LEVEL >= 1
constexpr int64_t kBlockRows = 3;
#else
constexpr int64_t kBlockRows = 1;
#endif

// Sums in vectors wider than a register would be kept in memory.
constexpr int64_t kRegisters = CONVOY_SIMD_LEVEL >= 2 ? 32 : 16;
constexpr int64_t kRegistersOfRow = kPanelColumns / kRegisterLanes;
constexpr int64_t kBlockSums = kBlockRows * kRegistersOfRow;

// Many rows are multiplied in tall blocks. With AVX2 these have half of a panel's columns: twice as
// many rows share what is read of the panel, half of which fits the nearest cache for twice as many
// k (6 rows of 16 columns: 91 of 100 GFLOP/s on Zen 3, 3 rows of 32 columns: 83).
constexpr int64_t kTallParts = CONVOY_SIMD_LEVEL == 1 ? kRegistersOfRow / 2 : kRegistersOfRow;
constexpr int64_t kTallRows = kBlockSums / kTallParts;

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

// `parts`: registers of a row, all of a panel or some that lie together.
template <class Element, int64_t rows, int64_t parts>
inline void multiply_block(const Element* a, int64_t stride_a, const Element* panel, float* c,
                           int64_t stride_c, int64_t k, bool accumulate) {
  constexpr int64_t pair = kPair<Element>;
  constexpr int64_t step = kPanelColumns * pair;
  RegisterFloats sums[rows][parts];
  // Every loop over rows and registers must unroll, or the sums leave their registers.
#pragma GCC unroll 8
  for (int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 8
    for (int64_t part = 0; part < parts; ++part)
      sums[row][part] = accumulate ? load_register<RegisterFloats>(c + row * stride_c +
                                                                   part * kRegisterLanes)
                                   : RegisterFloats{};
  }
  const int64_t whole = k / pair * pair;
  for (int64_t at = 0; at < whole; at += pair, panel += step) {
#pragma GCC unroll 8
    for (int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 8
      for (int64_t part = 0; part < parts; ++part)
        sums[row][part] = multiply_add(sums[row][part], a + row * stride_a + at,
                                       panel + part * kRegisterLanes * pair);
    }
  }
  if (whole < k) {
#pragma GCC unroll 8
    for (int64_t row = 0; row < rows; ++row) {
      const Element last[2] = {a[row * stride_a + whole], Element(0.0f)};
#pragma GCC unroll 8
      for (int64_t part = 0; part < parts; ++part)
        sums[row][part] =
            multiply_add(sums[row][part], last, panel + part * kRegisterLanes * pair);
    }
  }
#pragma GCC unroll 8
  for (int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 8
    for (int64_t part = 0; part < parts; ++part)
      __builtin_memcpy(c + row * stride_c + part * kRegisterLanes, &sums[row][part],
                       sizeof sums[row][part]);
  }
}

// Columns of some rows, as many at a time as the registers have sums for.
template <class Element, int64_t rows, int64_t parts>
inline void multiply_rows_of_panel(const Element* a, int64_t stride_a, const Element* panel,
                                   float* c, int64_t stride_c, int64_t k, bool accumulate) {
  constexpr int64_t together = rows * parts <= kBlockSums ? parts : std::min(parts, kTallParts);
  static_assert(parts % together == 0 && rows * together <= kBlockSums);
#pragma GCC unroll 8
  for (int64_t part = 0; part < parts; part += together)
    multiply_block<Element, rows, together>(
        a, stride_a, panel + part * kRegisterLanes * kPair<Element>, c + part * kRegisterLanes,
        stride_c, k, accumulate);
}

// The last, smaller block of rows.
template <class Element, int64_t rows, int64_t parts>
inline void multiply_rest(int64_t rest, const Element* a, int64_t stride_a, const Element* panel,
                          float* c, int64_t stride_c, int64_t k, bool accumulate) {
  if constexpr (rows > 0) {
    if (rest == rows)
      return multiply_rows_of_panel<Element, rows, parts>(a, stride_a, panel, c, stride_c, k,
                                                          accumulate);
    multiply_rest<Element, rows - 1, parts>(rest, a, stride_a, panel, c, stride_c, k, accumulate);
  }
}

// `parts`: registers of a row that hold columns, all of a panel or its first half.
template <class Element, int64_t parts>
inline void multiply_panel(const Element* a, int64_t stride_a, const Element* panel, float* c,
                           int64_t stride_c, GemmShape shape, bool accumulate) {
  constexpr int64_t together = std::min(parts, kTallParts);
  const int64_t tall = shape.m / kTallRows * kTallRows;
  for (int64_t part = 0; part < parts; part += together) {
    for (int64_t row = 0; row < tall; row += kTallRows)
      multiply_block<Element, kTallRows, together>(
          a + row * stride_a, stride_a, panel + part * kRegisterLanes * kPair<Element>,
          c + row * stride_c + part * kRegisterLanes, stride_c, shape.k, accumulate);
  }
  multiply_rest<Element, kTallRows - 1, parts>(shape.m - tall, a + tall * stride_a, stride_a, panel,
                                               c + tall * stride_c, stride_c, shape.k, accumulate);
}

template <class Element>
void multiply_panels(const Element* a, int64_t stride_a, PackedView<Element> b, float* c,
                     int64_t stride_c, GemmShape shape, bool accumulate) {
  const Element* panel = b.panels;
  int64_t column = 0;
  for (; column + kPanelColumns / 2 < shape.n; column += kPanelColumns, panel += b.panel_stride) {
    multiply_panel<Element, kRegistersOfRow>(a, stride_a, panel, c + column, stride_c, shape,
                                             accumulate);
  }
  if (column < shape.n) {
    multiply_panel<Element, kRegistersOfRow / 2>(a, stride_a, panel, c + column, stride_c, shape,
                                                 accumulate);
  }
}

template <class Element>
void multiply(const Element* a, int64_t stride_a, PackedView<Element> b, float* c, int64_t stride_c,
              GemmShape shape, bool accumulate) {
  multiply_panels(a, stride_a, b, c, stride_c, shape, accumulate);
}

#if CONVOY_SIMD_LEVEL < 3
// CPUs without products of bf16 widen it for each product. For as many rows as fill the registers,
// widening takes longer than the products. So both sides are widened once, a part of k at a time,
// whose panel stays in the nearest cache. The sums are the same to the bit.
constexpr int64_t kWidenedRows = 64;
constexpr int64_t kWidenedInner = 256;
constexpr int64_t kFewestWidened = kBlockRows + 2;

inline void widen_row(const c10::BFloat16* from, int64_t count, float* to) {
  int64_t at = 0;
  for (; at + kRegisterLanes <= count; at += kRegisterLanes) {
    const RegisterFloats values = load_wide(from + at);
    __builtin_memcpy(to + at, &values, sizeof values);
  }
  for (; at < count; ++at) to[at] = from[at];
}

// `k`: the panel's number of k; an odd last one has no partner.
inline void widen_panel(const c10::BFloat16* panel, int64_t k, float* to) {
  for (int64_t at = 0; at < k; at += 2, panel += 2 * kPanelColumns, to += 2 * kPanelColumns) {
#pragma GCC unroll 8
    for (int64_t part = 0; part < kRegistersOfRow; ++part) {
      const auto pairs = load_register<RegisterWords>(panel + part * kRegisterLanes * 2);
      const RegisterWords first = pairs << 16;
      const RegisterWords second = pairs & 0xffff0000u;
      __builtin_memcpy(to + part * kRegisterLanes, &first, sizeof first);
      if (at + 1 < k)
        __builtin_memcpy(to + kPanelColumns + part * kRegisterLanes, &second, sizeof second);
    }
  }
}

// Rows in fp32 from k on: the rows themselves, or their copy in `widened`.
struct FloatRows {
  const float* values;
  int64_t stride;
};
inline FloatRows float_rows(const float* a, int64_t stride_a, RowShape, float*) {
  return {a, stride_a};
}
inline FloatRows float_rows(const c10::BFloat16* a, int64_t stride_a, RowShape shape,
                            float* widened) {
  for (int64_t row = 0; row < shape.rows; ++row)
    widen_row(a + row * stride_a, shape.width, widened + row * kWidenedInner);
  return {widened, kWidenedInner};
}

template <>
inline void multiply(const c10::BFloat16* a, int64_t stride_a, PackedView<c10::BFloat16> b,
                     float* c, int64_t stride_c, GemmShape shape, bool accumulate) {
  if (shape.m < kFewestWidened || shape.k == 0)
    return multiply_panels(a, stride_a, b, c, stride_c, shape, accumulate);
  alignas(64) float widened[kWidenedRows * kWidenedInner];
  alignas(64) float panel[kWidenedInner * kPanelColumns];
  for (int64_t row = 0; row < shape.m; row += kWidenedRows) {
    const int64_t height = std::min(kWidenedRows, shape.m - row);
    for (int64_t k = 0; k < shape.k; k += kWidenedInner) {
      const int64_t depth = std::min(kWidenedInner, shape.k - k);
      const FloatRows rows = float_rows(a + row * stride_a + k, stride_a, {height, depth}, widened);
      for (int64_t column = 0; column < shape.n; column += kPanelColumns) {
        widen_panel(b.from(column, k).panels, depth, panel);
        multiply_panels<float>(rows.values, rows.stride, {panel, 0},
                               c + row * stride_c + column, stride_c,
                               {height, std::min(kPanelColumns, shape.n - column), depth},
                               accumulate || k > 0);
      }
    }
  }
}
#endif

// Two rows as one row of words: bf16 of both, or fp32 of the first.
CONVOY_INLINE Words load_pairs(const float* first, const float* second, c10::BFloat16*) {
  return (rounded_words(load(first)) >> 16) | (rounded_words(load(second)) & 0xffff0000u);
}
CONVOY_INLINE Words load_pairs(const c10::BFloat16* first, const c10::BFloat16* second,
                               c10::BFloat16*) {
  return words_of(load(first)) >> 16 | words_of(load(second));
}
CONVOY_INLINE Words load_pairs(const float* first, const float*, float*) {
  return words_of(load(first));
}

// Packs the columns of one panel, or fewer, and fills up with zeros.
template <class From, class Element>
void pack_panel_part(const From* b, int64_t stride, int64_t columns, int64_t k, Element* packed) {
  constexpr int64_t pair = kPair<Element>;
  const From zeros[kLanes]{};
  for (int64_t first = 0; first < kPanelColumns; first += kLanes, packed += kLanes * pair) {
    const int64_t count = std::clamp<int64_t>(columns - first, 0, kLanes);
    const auto store_words = [&](int64_t at, const From* row, const From* next) {
      const Words words = load_pairs(row, next, packed);
      store_registers(packed + at * kPanelColumns, words);
    };
    for (int64_t at = 0; at < k; at += pair) {
      const From* row = b + at * stride + first;
      const bool paired = pair == 2 && at + 1 < k;
      if (count == kLanes) {
        store_words(at, row, paired ? row + stride : zeros);
        continue;
      }
      From parts[2][kLanes]{};
      std::copy_n(row, count, parts[0]);
      if (paired) std::copy_n(row + stride, count, parts[1]);
      store_words(at, parts[0], parts[1]);
    }
  }
}

// Panels side by side are packed together, so that lines of a row are read one after the other.
template <int64_t panels, class From, class Element>
void pack_panels(const From* b, int64_t stride, int64_t k, Element* packed) {
  constexpr int64_t pair = kPair<Element>;
  constexpr int64_t kAhead = 8;  // rows; further ahead than the hardware fetches
  const int64_t panel_stride = panel_elements<Element>(k);
  for (int64_t at = 0; at + pair <= k; at += pair, b += pair * stride) {
    Element* to = packed + at * kPanelColumns;
#pragma GCC unroll 4
    for (int64_t panel = 0; panel < panels; ++panel, to += panel_stride) {
      const From* from = b + panel * kPanelColumns;
      for (int64_t row = 0; row < pair; ++row)
        __builtin_prefetch(from + (kAhead + row) * stride);
#pragma GCC unroll 2
      for (int64_t half = 0; half < kPanelColumns; half += kLanes) {
        const Words words = load_pairs(from + half, from + half + stride, to);
        store_registers(to + half * pair, words);
      }
    }
  }
  if (k % pair == 0) return;
  for (int64_t panel = 0; panel < panels; ++panel)
    pack_panel_part(b + panel * kPanelColumns, stride, kPanelColumns, 1,
                    packed + panel * panel_stride + (k - 1) * kPanelColumns);
}

template <class From, class Element>
void pack_rows_from(const From* b, int64_t stride, GemmShape shape, Element* packed) {
  constexpr int64_t kTogether = 4;
  const int64_t panel_stride = panel_elements<Element>(shape.k);
  int64_t column = 0;
  const auto next = [&](int64_t panels) {
    column += panels * kPanelColumns;
    packed += panels * panel_stride;
  };
  for (; column + kTogether * kPanelColumns <= shape.n; next(kTogether))
    pack_panels<kTogether>(b + column, stride, shape.k, packed);
  for (; column + kPanelColumns <= shape.n; next(1))
    pack_panels<1>(b + column, stride, shape.k, packed);
  if (column < shape.n)
    pack_panel_part(b + column, stride, shape.n - column, shape.k, packed);
}

struct Span {
  int64_t begin, end;
};
template <class Element>
void transpose_plainly(const Element* from, int64_t stride, Span columns, Span rows, Element* to,
                       int64_t to_stride) {
  for (int64_t row = rows.begin; row < rows.end; ++row)
    for (int64_t column = columns.begin; column < columns.end; ++column)
      to[column * to_stride + row] = from[row * stride + column];
}

#if CONVOY_SIMD_LEVEL >= 1
// A square of words, as many rows as a register has lanes, is transposed: each step exchanges
// halves of two registers.
constexpr int64_t kSquare = kRegisterLanes;
using SquareRow = int32_t __attribute__((vector_size(4 * kSquare)));
template <int32_t half, int32_t... lanes>
CONVOY_INLINE void exchange_pair(SquareRow& first, SquareRow& second,
                                 std::integer_sequence<int32_t, lanes...>) {
  constexpr auto source = [](int32_t lane) {
    return (lane & half) == 0 ? lane : lane - half + static_cast<int32_t>(kSquare);
  };
  const SquareRow low = __builtin_shuffle(first, second, SquareRow{source(lanes)...});
  second = __builtin_shuffle(first, second, SquareRow{source(lanes) + half...});
  first = low;
}
template <int32_t half>
CONVOY_INLINE void exchange_halves(SquareRow* rows) {
#pragma GCC unroll 16
  for (int32_t at = 0; at < kSquare; ++at) {
    if ((at & half) == 0)
      exchange_pair<half>(rows[at], rows[at + half],
                          std::make_integer_sequence<int32_t, kSquare>());
  }
}
CONVOY_INLINE void transpose(SquareRow* rows) {
  if constexpr (kSquare == 16) exchange_halves<8>(rows);
  exchange_halves<4>(rows);
  exchange_halves<2>(rows);
  exchange_halves<1>(rows);
}

// Words of two rows, as load_pairs.
CONVOY_INLINE SquareRow square_row(const float* first, const float*) {
  return load_register<SquareRow>(first);
}
CONVOY_INLINE SquareRow square_row(const c10::BFloat16* first, const c10::BFloat16* second) {
  return reinterpret_cast<SquareRow>(reinterpret_cast<RegisterWords>(load_wide(first)) >> 16 |
                                     reinterpret_cast<RegisterWords>(load_wide(second)));
}

// A word of a panel is one fp32, or two bf16 of one column.
template <class Element>
void pack_columns(const Element* b_t, int64_t stride, GemmShape shape, Element* packed) {
  constexpr int64_t pair = kPair<Element>;
  constexpr int64_t kTile = kSquare * pair;  // k of a row of words
  const int64_t padded_k = round_up(shape.k, pair);
  for (int64_t column = 0; column < shape.n; column += kSquare) {
    const int64_t present = std::min(kSquare, shape.n - column);
    const Element* from = b_t + column * stride;
    Element* to = packed + column / kPanelColumns * kPanelColumns * padded_k +
                  column % kPanelColumns * pair;
    int64_t k = 0;
    for (; k + kTile <= shape.k; k += kTile) {
      SquareRow words[kSquare]{};
#pragma GCC unroll 16
      for (int64_t lane = 0; lane < kSquare; ++lane)
        if (lane < present)
          __builtin_memcpy(words + lane, from + lane * stride + k, sizeof(SquareRow));
      transpose(words);
#pragma GCC unroll 16
      for (int64_t word = 0; word < kSquare; ++word)
        __builtin_memcpy(to + (k + word * pair) * kPanelColumns, words + word, sizeof(SquareRow));
    }
    if (k == shape.k) continue;
    SquareRow words[kSquare]{};
    for (int64_t lane = 0; lane < present; ++lane)
      std::copy_n(from + lane * stride + k, shape.k - k, reinterpret_cast<Element*>(words + lane));
    transpose(words);
    for (int64_t word = 0; k < padded_k; ++word, k += pair)
      __builtin_memcpy(to + k * kPanelColumns, words + word, sizeof(SquareRow));
  }
  // Fills with zeros what no column of the last panel wrote.
  const int64_t written = round_up(shape.n, kSquare) % kPanelColumns;
  if (written == 0) return;
  Element* last = packed + shape.n / kPanelColumns * kPanelColumns * padded_k;
  for (int64_t k = 0; k < padded_k; k += pair)
    std::fill_n(last + k * kPanelColumns + written * pair, (kPanelColumns - written) * pair,
                Element(0.0f));
}

// Pairs of rows become words, a square of which is transposed together.
template <class Element>
void transpose_rows(const Element* from, int64_t stride, RowShape shape, Element* to,
                    int64_t to_stride) {
  constexpr int64_t pair = kPair<Element>;
  constexpr int64_t kTile = kSquare * pair;
  const int64_t tiled_rows = shape.rows / kTile * kTile;
  const int64_t tiled_columns = shape.width / kSquare * kSquare;
  for (int64_t column = 0; column < tiled_columns; column += kSquare) {
    for (int64_t row = 0; row < tiled_rows; row += kTile) {
      SquareRow words[kSquare];
#pragma GCC unroll 16
      for (int64_t at = 0; at < kSquare; ++at) {
        const Element* first = from + (row + at * pair) * stride + column;
        words[at] = square_row(first, first + stride * (pair - 1));
      }
      transpose(words);
#pragma GCC unroll 16
      for (int64_t lane = 0; lane < kSquare; ++lane)
        __builtin_memcpy(to + (column + lane) * to_stride + row, words + lane, sizeof(SquareRow));
    }
  }
  transpose_plainly(from, stride, {0, tiled_columns}, {tiled_rows, shape.rows}, to, to_stride);
  transpose_plainly(from, stride, {tiled_columns, shape.width}, {0, shape.rows}, to, to_stride);
}
#else
template <class Element>
void transpose_rows(const Element* from, int64_t stride, RowShape shape, Element* to,
                    int64_t to_stride) {
  transpose_plainly(from, stride, {0, shape.width}, {0, shape.rows}, to, to_stride);
}

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
