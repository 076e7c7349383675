// SPDX-License-Identifier: Apache-2.0
//
// The loops for CPUs with matrix units (AMX): those of AVX-512 with bf16, but tiles multiply bf16.
// A tile of C has 16 rows and 16 columns of fp32, one of A 16 rows and 32 k, one of B 32 k and 16
// columns in the order of a panel. A row's bits depend on the others nowhere: every sum takes 32 k
// at a time, in one order, whatever stands beside it.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "convoy/model/kernels/simd/simd_kernels.h"

#pragma GCC target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,prefer-vector-width=512")

namespace convoy::kernels {
namespace avx512_bf16 {
extern const SimdKernels<float> kFloatTable;
extern const SimdKernels<c10::BFloat16> kBf16Table;
}  // namespace avx512_bf16

namespace amx {
namespace {

using c10::BFloat16;

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileColumns = 16;
constexpr int64_t kTileInner = 32;
constexpr int64_t kTileBytes = 1024;
constexpr int64_t kPanelLineBytes = kPanelColumns * 2 * sizeof(BFloat16);  // of two k
// Rows of A that are packed at a time, and k: a panel of so many k stays in the nearest cache.
constexpr int64_t kPackedRows = 64;
constexpr int64_t kPackedInner = 512;
// The same of products with codes, whose panels are unpacked for each of those rows.
constexpr int64_t kCodedRows = 256;
constexpr int64_t kCodedInner = 256;
// k of few rows that are widened at a time: the codes of a panel are read in order.
constexpr int64_t kWideInner = 4096;
// Words from the codes in use to those that are fetched.
constexpr int64_t kPrefetchedWords = 1024;

// The intrinsics do not say that they read memory.
inline void finish_stores() { asm volatile("" ::: "memory"); }

// The operand of LDTILECFG: Intel's Software Developer's Manual, volume 1, section 18.3.
struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Tiles 0 to 3 for C, of which two have `upper` rows and two `lower`; 4 and 5 for A; 6 and 7 for B.
// A thread keeps its shapes from call to call. oneDNN may have set others: asking costs a
// fifteenth of setting.
void shape_tiles(int64_t upper, int64_t lower) {
  TileShapes wanted;
  for (int tile = 0; tile < 8; ++tile) {
    const bool is_lower = tile == 2 || tile == 3 || tile == 5;
    wanted.row_bytes[tile] = 64;
    wanted.rows[tile] = static_cast<uint8_t>(tile >= 6 ? kTileRows : is_lower ? lower : upper);
  }
  TileShapes found;
  _tile_storeconfig(&found);
  if (std::memcmp(&wanted, &found, sizeof wanted) == 0) return;
  finish_stores();
  _tile_loadconfig(&wanted);
}

// `rows` of A as tiles one after the other: all k of the first sixteen rows, then of the next. Rows
// that lie a power of two apart would push each other out of the nearest cache.
void pack_tiles(const BFloat16* a, int64_t stride, int64_t rows, int64_t k, BFloat16* packed) {
  const int64_t whole = k / kTileInner * kTileInner;
  const auto rest = static_cast<__mmask32>((uint64_t{1} << (k - whole)) - 1);
  for (int64_t first = 0; first < rows; first += kTileRows, a += kTileRows * stride) {
    const int64_t count = std::min(kTileRows, rows - first);
    for (int64_t row = 0; row < count; ++row) {
      const BFloat16* from = a + row * stride;
      BFloat16* to = packed + row * kTileInner;
      int64_t at = 0;
      for (; at < whole; at += kTileInner, to += count * kTileInner)
        _mm512_storeu_si512(to, _mm512_loadu_si512(from + at));
      if (rest != 0) _mm512_storeu_si512(to, _mm512_maskz_loadu_epi16(rest, from + at));
    }
    packed += count * round_up(k, kTileInner);
  }
}

// One or two tiles of rows times one or two of columns. `a`: packed tiles of the upper rows, behind
// them the lower ones.
struct Block {
  const BFloat16* a = nullptr;
  int64_t upper = 0;
  int64_t lower = 0;
  const BFloat16* panel = nullptr;
  const BFloat16* panel_end = nullptr;  // the last tile of k where it is not whole, padded
  int64_t steps = 0;
  float* c = nullptr;
  int64_t stride_c = 0;
  bool accumulate = false;
};

template <bool has_lower, bool has_right>
void multiply_block(const Block& block) {
  const int64_t c_bytes = block.stride_c * static_cast<int64_t>(sizeof(float));
  float* const lower_c = block.c + kTileRows * block.stride_c;
  if (block.accumulate) {
    _tile_loadd(0, block.c, c_bytes);
    if constexpr (has_right) _tile_loadd(1, block.c + kTileColumns, c_bytes);
    if constexpr (has_lower) _tile_loadd(2, lower_c, c_bytes);
    if constexpr (has_lower && has_right) _tile_loadd(3, lower_c + kTileColumns, c_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const BFloat16* upper_a = block.a;
  const BFloat16* lower_a = block.a + block.steps * block.upper * kTileInner;
  const BFloat16* b = block.panel;
  for (int64_t step = 0; step < block.steps; ++step) {
    if (step + 1 == block.steps && block.panel_end != nullptr) b = block.panel_end;
    _tile_loadd(6, b, kPanelLineBytes);
    _tile_loadd(4, upper_a, 64);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (has_right) {
      _tile_loadd(7, b + 2 * kTileColumns, kPanelLineBytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (has_lower) {
      _tile_loadd(5, lower_a, 64);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (has_lower && has_right) _tile_dpbf16ps(3, 5, 7);
    b += kTileInner * kPanelColumns;
    upper_a += block.upper * kTileInner;
    lower_a += block.lower * kTileInner;
  }
  _tile_stored(0, block.c, c_bytes);
  if constexpr (has_right) _tile_stored(1, block.c + kTileColumns, c_bytes);
  if constexpr (has_lower) _tile_stored(2, lower_c, c_bytes);
  if constexpr (has_lower && has_right) _tile_stored(3, lower_c + kTileColumns, c_bytes);
}

// C [rows, n] = A B, or C += A B, of packed rows.
void multiply_packed(const BFloat16* a, int64_t rows, PackedView<BFloat16> b, float* c,
                     int64_t stride_c, int64_t n, int64_t k, bool accumulate) {
  alignas(64) BFloat16 end_of_panel[kTileInner * kPanelColumns];
  const int64_t whole = k / kTileInner * kTileInner;
  Block block{.steps = round_up(k, kTileInner) / kTileInner, .stride_c = stride_c,
              .accumulate = accumulate};
  for (int64_t column = 0; column < n; column += kPanelColumns, b.panels += b.panel_stride) {
    block.panel = b.panels;
    if (whole < k) {
      const int64_t present = panel_elements<BFloat16>(k - whole);
      std::copy_n(b.panels + whole * kPanelColumns, present, end_of_panel);
      std::fill(end_of_panel + present, std::end(end_of_panel), BFloat16(0.0f));
      block.panel_end = end_of_panel;
    }
    finish_stores();
    const bool has_right = n - column > kTileColumns;
    for (int64_t row = 0; row < rows; row += 2 * kTileRows) {
      block.upper = std::min(kTileRows, rows - row);
      block.lower = std::min(kTileRows, rows - row - block.upper);
      block.a = a + row * block.steps * kTileInner;
      block.c = c + row * stride_c + column;
      shape_tiles(block.upper, std::max<int64_t>(block.lower, 1));
      if (block.lower > 0)
        has_right ? multiply_block<true, true>(block) : multiply_block<true, false>(block);
      else
        has_right ? multiply_block<false, true>(block) : multiply_block<false, false>(block);
    }
  }
}

void multiply(const BFloat16* a, int64_t stride_a, PackedView<BFloat16> b, float* c,
              int64_t stride_c, GemmShape shape, bool accumulate) {
  alignas(64) BFloat16 packed[kPackedRows * kPackedInner];
  for (int64_t k = 0; k == 0 || k < shape.k; k += kPackedInner) {
    const int64_t depth = std::min(kPackedInner, shape.k - k);
    for (int64_t row = 0; row < shape.m; row += kPackedRows) {
      const int64_t rows = std::min(kPackedRows, shape.m - row);
      pack_tiles(a + row * stride_a + k, stride_a, rows, depth, packed);
      multiply_packed(packed, rows, b.from(0, k), c + row * stride_c, stride_c, shape.n, depth,
                      accumulate || k > 0);
    }
  }
}

// Tiles pay from several rows on: few rows are summed in vectors, in the order of a tile: 16 even k
// one after the other, 16 odd ones, then the sum of both is added (TDPBF16PS in Intel's manual,
// volume 2; a tile takes numbers below the smallest normal one for 0, which tells only where all are
// so small).

// By nibble.
alignas(64) constexpr float kNibbleValues[16] = {0.0f,  1.0f,  2.0f,  3.0f,  4.0f,  5.0f,
                                                 6.0f,  7.0f,  -8.0f, -7.0f, -6.0f, -5.0f,
                                                 -4.0f, -3.0f, -2.0f, -1.0f};


// Codes of one column for successive k, the even of a pair and the odd one.
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

// Sums of rows for a panel.
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

// Adds up to kTileInner k of a panel. `a`: fp32, kWideInner apart, zero behind the last k. Returns
// the next codes.
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

// A [rows, count] in fp32, rows kWideInner apart.
template <int rows>
void widen_rows(const BFloat16* a, int64_t stride_a, int64_t count, float* wide) {
  for (int row = 0; row < rows; ++row, wide += kWideInner)
    std::fill(std::copy_n(a + row * stride_a, count, wide), wide + kWideInner, 0.0f);
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
  if (shape.m == 1)
    return multiply_few_rows<1>(a, stride_a, b, c, stride_c, shape, accumulate);
  if (shape.m == 2)
    return multiply_few_rows<2>(a, stride_a, b, c, stride_c, shape, accumulate);
  alignas(64) BFloat16 packed[kCodedRows * kCodedInner];
  alignas(64) BFloat16 panel[kCodedInner * kPanelColumns];
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
                        kPanelColumns, depth, accumulate || k > 0);
      }
    }
  }
}

// The scales and offsets of a group for half a panel. An offset takes its part first.
struct GroupScale {
  GroupScale(const NibbleGroups& groups, int64_t group, int64_t half)
      : scale(widen(groups.scales + group * kPanelColumns + half)),
        offset(groups.offsets == nullptr ? __m512{}
                                         : widen(groups.offsets + group * kPanelColumns + half)) {}

  static __m512 widen(const BFloat16* from) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return _mm512_castsi512_ps(
        _mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, halves), 16));
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
    NibbleGroups of_panel = groups;
    const uint32_t* codes = b.codes + k / 8 * kPanelColumns;
    for (int64_t column = 0; column < shape.n; column += kPanelColumns, codes += b.panel_stride) {
      add_few_rows<rows>(wide, codes, of_panel, k / groups.inputs, depth, c + column, stride_c);
      of_panel.scales += groups.panel_stride;
      if (groups.offsets != nullptr) of_panel.offsets += groups.panel_stride;
    }
  }
}

// Groups are at most kCodedInner long and start at multiples of it.
void multiply_nibbles(const BFloat16* a, int64_t stride_a, CodedView b, const NibbleGroups& groups,
                      float* c, int64_t stride_c, GemmShape shape, bool accumulate) {
  alignas(64) BFloat16 packed[kCodedRows * kCodedInner];
  alignas(64) BFloat16 panel[kCodedInner * kPanelColumns];
  alignas(64) float sums[2 * kTileRows * kPanelColumns];
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
      // Each group's rows are packed apart.
      for (int64_t first = 0; first < depth; first += groups.inputs)
        pack_tiles(a + row * stride_a + k + first, stride_a, rows,
                   std::min(groups.inputs, depth - first), packed + first * rows);
      NibbleGroups of_panel = groups;
      if (groups.row_sums != nullptr) of_panel.row_sums += row * groups.row_sums_stride;
      const uint32_t* codes = b.codes + k / 8 * kPanelColumns;
      for (int64_t column = 0; column < shape.n; column += kPanelColumns, codes += b.panel_stride) {
        unpack(codes, depth, panel);
        for (int64_t first = 0; first < depth; first += groups.inputs) {
          const int64_t inputs = std::min(groups.inputs, depth - first);
          const int64_t padded = round_up(inputs, kTileInner);
          for (int64_t tile = 0; tile < rows; tile += 2 * kTileRows) {
            const int64_t count = std::min(2 * kTileRows, rows - tile);
            NibbleGroups of_tile = of_panel;
            if (groups.row_sums != nullptr) of_tile.row_sums += tile * groups.row_sums_stride;
            multiply_packed(packed + first * rows + tile * padded, count,
                            {panel + first * kPanelColumns, 0}, sums, kPanelColumns, kPanelColumns,
                            inputs, false);
            add_group(of_tile, (k + first) / groups.inputs, sums,
                      c + (row + tile) * stride_c + column, stride_c, count);
          }
        }
        of_panel.scales += groups.panel_stride;
        if (groups.offsets != nullptr) of_panel.offsets += groups.panel_stride;
      }
    }
  }
}

}  // namespace

const SimdKernels<BFloat16>& bf16_table();
const SimdKernels<BFloat16>& bf16_table() {
  static const SimdKernels<BFloat16> table = [] {
    SimdKernels<BFloat16> tiles = avx512_bf16::kBf16Table;
    tiles.multiply = multiply;
    tiles.multiply_bytes = multiply_bytes;
    tiles.multiply_nibbles = multiply_nibbles;
    return tiles;
  }();
  return table;
}

}  // namespace amx
}  // namespace convoy::kernels
