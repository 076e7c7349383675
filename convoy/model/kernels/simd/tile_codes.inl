// SPDX-License-Identifier: Apache-2.0
//
// Products with codes of a quantised weight on CPUs with AMX. For several rows panels are unpacked
// and multiplied in tiles. A tile costs as much for one row as for eight, so one row or two are
// summed in vectors, in the order of a tile: 16 even k one after the other, 16 odd ones, then the
// sum of both is added (TDPBF16PS in Intel's Software Developer's Manual, volume 2). The bits are
// the same, unless a sum lies below the smallest normal number: a tile takes it for 0. See
// tile_gemm.inl and quantized_loops.inl.

// Rows that share an unpacked panel, and the number of its k.
constexpr int64_t kCodedRows = 256;
constexpr int64_t kCodedInner = 256;
// Number of k that are widened at a time for few rows: the codes of a panel are read in order.
constexpr int64_t kWideInner = 4096;
// Words that are fetched ahead.
constexpr int64_t kPrefetchedWords = 1024;

// The value of each nibble.
alignas(64) constexpr float kNibbleValues[16] = {0.0f,  1.0f,  2.0f,  3.0f,  4.0f,  5.0f,
                                                 6.0f,  7.0f,  -8.0f, -7.0f, -6.0f, -5.0f,
                                                 -4.0f, -3.0f, -2.0f, -1.0f};

// The values of one column's codes for successive k: at(words, place).
template <int bits>
struct WordValues;
template <>
struct WordValues<4> {
  static __m512 at(__m512i words, int place) {
    const int shift = 4 * (place / 2) + 16 * (place % 2);
    return _mm512_maskz_permutexvar_ps(0xffff, _mm512_maskz_srli_epi32(0xffff, words, shift),
                                       _mm512_load_ps(kNibbleValues));
  }
};
template <>
struct WordValues<8> {
  static __m512 at(__m512i words, int place) {
    const __m512i upper = _mm512_maskz_slli_epi32(0xffff, words, 24 - 8 * place);
    return _mm512_maskz_cvtepi32_ps(0xffff, _mm512_maskz_srai_epi32(0xffff, upper, 24));
  }
};

// The sums of `rows` rows for a panel.
template <int rows>
struct RowSums {
  RowSums() = default;
  RowSums(const float* c, int64_t stride, bool accumulate) {
    for (int row = 0; row < rows && accumulate; ++row)
      for (int half = 0; half < 2; ++half)
        of[row][half] = _mm512_loadu_ps(c + row * stride + half * kTileColumns);
  }
  void store(float* c, int64_t stride) const {
    for (int row = 0; row < rows; ++row)
      for (int half = 0; half < 2; ++half)
        _mm512_storeu_ps(c + row * stride + half * kTileColumns, of[row][half]);
  }

  __m512 of[rows][2]{};
};

// Adds at most kTileInner k of a panel to the sums. `a`: fp32, kWideInner apart, zero behind the
// last k. Returns the next codes.
template <int bits, int rows>
inline const uint32_t* add_tile(const float* a, const uint32_t* codes, int64_t inputs,
                                RowSums<rows>& sums) {
  constexpr int kPerWord = 32 / bits;
  RowSums<rows> even;
  RowSums<rows> odd;
  for (int64_t k = 0; k < inputs; k += kPerWord, codes += kPanelColumns) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      _mm_prefetch(reinterpret_cast<const char*>(codes + kPrefetchedWords + half * kTileColumns),
                   _MM_HINT_T0);
      const __m512i words = _mm512_loadu_si512(codes + half * kTileColumns);
#pragma GCC unroll 8
      for (int place = 0; place < kPerWord; place += 2) {
        const __m512 of_even = WordValues<bits>::at(words, place);
        const __m512 of_odd = WordValues<bits>::at(words, place + 1);
#pragma GCC unroll 2
        for (int row = 0; row < rows; ++row) {
          const float* from = a + row * kWideInner + k + place;
          even.of[row][half] =
              _mm512_fmadd_ps(_mm512_set1_ps(from[0]), of_even, even.of[row][half]);
          odd.of[row][half] = _mm512_fmadd_ps(_mm512_set1_ps(from[1]), of_odd, odd.of[row][half]);
        }
      }
    }
  }
  for (int row = 0; row < rows; ++row)
    for (int half = 0; half < 2; ++half)
      sums.of[row][half] += even.of[row][half] + odd.of[row][half];
  return codes;
}

__m512 widen(__m256i halves) {
  return _mm512_castsi512_ps(
      _mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, halves), 16));
}

// Writes A [rows, count] in fp32 to `wide`, rows kWideInner apart, with zeros to the next whole
// tile. Numbers below the smallest normal one become 0, as a tile takes them.
template <int rows>
void widen_rows(const BFloat16* a, int64_t stride_a, int64_t count, float* wide) {
  constexpr int64_t kTogether = 16;
  const __m256i exponent = _mm256_set1_epi16(0x7f80);
  for (int row = 0; row < rows; ++row, a += stride_a, wide += kWideInner) {
    for (int64_t at = 0; at < round_up(count, kTileInner); at += kTogether) {
      const int64_t present = std::clamp<int64_t>(count - at, 0, kTogether);
      const auto lanes = static_cast<__mmask16>((1u << present) - 1);
      const __m256i halves = _mm256_maskz_loadu_epi16(lanes, a + at);
      const __mmask16 normal = _mm256_test_epi16_mask(halves, exponent);
      _mm512_store_ps(wide + at, widen(_mm256_maskz_mov_epi16(normal, halves)));
    }
  }
}

template <int rows>
void multiply_few_rows(const BFloat16* a, int64_t stride_a, CodedView b, float* c, int64_t stride_c,
                       GemmShape shape, bool accumulate) {
  alignas(64) float wide[rows * kWideInner];
  for (int64_t k = 0; k == 0 || k < shape.k; k += kWideInner) {
    const int64_t depth = std::min(kWideInner, shape.k - k);
    widen_rows<rows>(a + k, stride_a, depth, wide);
    const uint32_t* codes = b.codes + k / 4 * kPanelColumns;
    for (int64_t column = 0; column < shape.n; column += kPanelColumns, codes += b.panel_stride) {
      RowSums<rows> sums(c + column, stride_c, accumulate || k > 0);
      const uint32_t* next = codes;
      for (int64_t at = 0; at < depth; at += kTileInner)
        next = add_tile<8>(wide + at, next, std::min(kTileInner, depth - at), sums);
      sums.store(c + column, stride_c);
    }
  }
}

void multiply_bytes(const BFloat16* a, int64_t stride_a, CodedView b, float* c, int64_t stride_c,
                    GemmShape shape, bool accumulate) {
  if (shape.m == 1) return multiply_few_rows<1>(a, stride_a, b, c, stride_c, shape, accumulate);
  if (shape.m == 2) return multiply_few_rows<2>(a, stride_a, b, c, stride_c, shape, accumulate);
  alignas(64) BFloat16 packed[kCodedRows * kCodedInner];
  alignas(64) BFloat16 panel[kCodedInner * kPanelColumns];
  TileShapes shapes;
  const auto unpack = avx512_bf16::kBf16Table.unpack_bytes;
  for (int64_t k = 0; k == 0 || k < shape.k; k += kCodedInner) {
    const int64_t depth = std::min(kCodedInner, shape.k - k);
    for (int64_t row = 0; row < shape.m; row += kCodedRows) {
      const int64_t rows = std::min(kCodedRows, shape.m - row);
      pack_tiles(a + row * stride_a + k, stride_a, rows, depth, packed);
      const uint32_t* codes = b.codes + k / 4 * kPanelColumns;
      for (int64_t column = 0; column < shape.n; column += kPanelColumns, codes += b.panel_stride) {
        unpack(codes, depth, panel);
        multiply_packed(packed, rows, {panel, 0}, c + row * stride_c + column, stride_c,
                        std::min(kPanelColumns, shape.n - column), depth, accumulate || k > 0,
                        shapes);
      }
    }
  }
}

// The scales and offsets of a group for half a panel. add() adds the offset's part first.
struct GroupScale {
  GroupScale(const NibbleGroups& groups, int64_t group, int64_t half)
      : scale(load(groups.scales + group * kPanelColumns + half)),
        offset(groups.offsets == nullptr ? __m512{}
                                         : load(groups.offsets + group * kPanelColumns + half)) {}

  static __m512 load(const BFloat16* from) {
    return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  __m512 add(__m512 to, const float* row_sum, __m512 sum) const {
    if (row_sum != nullptr) to = _mm512_fmadd_ps(offset, _mm512_set1_ps(*row_sum), to);
    return _mm512_fmadd_ps(scale, sum, to);
  }

  __m512 scale;
  __m512 offset;
};

const float* row_sum_at(const NibbleGroups& groups, int64_t row, int64_t group) {
  return groups.offsets == nullptr ? nullptr
                                   : groups.row_sums + row * groups.row_sums_stride + group;
}

// C += scales * sums + offsets * row_sums of one group of a panel.
void add_group(const NibbleGroups& groups, int64_t group, const float* sums, float* c,
               int64_t stride_c, int64_t rows) {
  for (int64_t half = 0; half < kPanelColumns; half += kTileColumns) {
    const GroupScale scale(groups, group, half);
    for (int64_t row = 0; row < rows; ++row) {
      float* to = c + row * stride_c + half;
      _mm512_storeu_ps(to, scale.add(_mm512_loadu_ps(to), row_sum_at(groups, row, group),
                                     _mm512_loadu_ps(sums + row * kPanelColumns + half)));
    }
  }
}

template <int rows>
void add_few_rows(const float* a, const uint32_t* codes, const NibbleGroups& groups,
                  int64_t first_group, int64_t depth, float* c, int64_t stride_c) {
  RowSums<rows> totals(c, stride_c, true);
  for (int64_t k = 0, group = first_group; k < depth; ++group) {
    const int64_t end = std::min(k + groups.inputs, depth);
    RowSums<rows> sums;
    for (; k < end; k += kTileInner)
      codes = add_tile<4>(a + k, codes, std::min(kTileInner, end - k), sums);
    k = end;
    for (int half = 0; half < 2; ++half) {
      const GroupScale scale(groups, group, half * kTileColumns);
      for (int row = 0; row < rows; ++row)
        totals.of[row][half] =
            scale.add(totals.of[row][half], row_sum_at(groups, row, group), sums.of[row][half]);
    }
  }
  totals.store(c, stride_c);
}

template <int rows>
void multiply_few_rows(const BFloat16* a, int64_t stride_a, CodedView b, const NibbleGroups& groups,
                       float* c, int64_t stride_c, GemmShape shape) {
  alignas(64) float wide[rows * kWideInner];
  for (int64_t k = 0; k < shape.k; k += kWideInner) {
    const int64_t depth = std::min(kWideInner, shape.k - k);
    widen_rows<rows>(a + k, stride_a, depth, wide);
    const uint32_t* codes = b.codes + k / 8 * kPanelColumns;
    for (int64_t column = 0; column < shape.n; column += kPanelColumns, codes += b.panel_stride)
      add_few_rows<rows>(wide, codes, groups.from_column(column), k / groups.inputs, depth,
                         c + column, stride_c);
  }
}

// C += an unpacked panel, group by group. `packed`: the rows, packed separately for each group.
void add_panel(const BFloat16* packed, int64_t rows, const BFloat16* panel,
               const NibbleGroups& groups, int64_t first_group, int64_t depth, float* c,
               int64_t stride_c, TileShapes& shapes) {
  alignas(64) float sums[2 * kTileRows * kPanelColumns];
  for (int64_t k = 0, group = first_group; k < depth; k += groups.inputs, ++group) {
    const int64_t inputs = std::min(groups.inputs, depth - k);
    for (int64_t row = 0; row < rows; row += 2 * kTileRows) {
      const int64_t count = std::min(2 * kTileRows, rows - row);
      multiply_packed(packed + k * rows + row * round_up(inputs, kTileInner), count,
                      {panel + k * kPanelColumns, 0}, sums, kPanelColumns, kPanelColumns, inputs,
                      false, shapes);
      add_group(groups.from_row(row), group, sums, c + row * stride_c, stride_c, count);
    }
  }
}

// kCodedInner and kWideInner are multiples of every group size.
void multiply_nibbles(const BFloat16* a, int64_t stride_a, CodedView b, const NibbleGroups& groups,
                      float* c, int64_t stride_c, GemmShape shape, bool accumulate) {
  alignas(64) BFloat16 packed[kCodedRows * kCodedInner];
  alignas(64) BFloat16 panel[kCodedInner * kPanelColumns];
  TileShapes shapes;
  const auto unpack = avx512_bf16::kBf16Table.unpack_nibbles;
  if (!accumulate) {
    for (int64_t row = 0; row < shape.m; ++row)
      std::fill_n(c + row * stride_c, round_up(shape.n, kPanelColumns), 0.0f);
  }
  if (shape.m == 1) return multiply_few_rows<1>(a, stride_a, b, groups, c, stride_c, shape);
  if (shape.m == 2) return multiply_few_rows<2>(a, stride_a, b, groups, c, stride_c, shape);
  for (int64_t k = 0; k < shape.k; k += kCodedInner) {
    const int64_t depth = std::min(kCodedInner, shape.k - k);
    for (int64_t row = 0; row < shape.m; row += kCodedRows) {
      const int64_t rows = std::min(kCodedRows, shape.m - row);
      // The rows are packed separately for each group.
      for (int64_t first = 0; first < depth; first += groups.inputs)
        pack_tiles(a + row * stride_a + k + first, stride_a, rows,
                   std::min(groups.inputs, depth - first), packed + first * rows);
      const uint32_t* codes = b.codes + k / 8 * kPanelColumns;
      for (int64_t column = 0; column < shape.n; column += kPanelColumns, codes += b.panel_stride) {
        unpack(codes, depth, panel);
        add_panel(packed, rows, panel, groups.from_column(column).from_row(row), k / groups.inputs,
                  depth, c + row * stride_c + column, stride_c, shapes);
      }
    }
  }
}
