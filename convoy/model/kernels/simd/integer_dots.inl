// SPDX-License-Identifier: Apache-2.0
//
// Products of rows that are rounded to 8 bits with the codes of a quantised weight: sums of whole
// numbers, exact, block by block; a block's sum is then scaled in fp32. See block_sums.inl, and
// quantized_loops.inl for the order of codes.

#if CONVOY_SIMD_LEVEL >= 2
constexpr int64_t kDotRows = 8;
#elif CONVOY_SIMD_LEVEL >= 1
constexpr int64_t kDotRows = 4;
#else
constexpr int64_t kDotRows = 2;
#endif
// Registers of columns whose sums are kept at a time, for each row; their totals are in memory.
template <int64_t rows>
constexpr int64_t kDotParts = rows == 1 && kRegistersOfRow >= 4 ? 4 : 2;

// Without this barrier the compiler would load all rows first and have no register left for their
// sums.
template <class Register>
CONVOY_INLINE void keep_in_order([[maybe_unused]] Register& sums) {
#if CONVOY_SIMD_LEVEL >= 1
  asm volatile("" : "+v"(sums));
#endif
}

// One word of codes for some rows and registers of columns, added to their sums.
template <int bits, int64_t rows, int64_t parts>
CONVOY_INLINE void add_word(const RoundedBlock* a, int64_t stride_a, const uint32_t* codes,
                            int64_t word, BlockSums<bits> (&sums)[rows][parts]) {
  using Sums = BlockSums<bits>;
  constexpr int64_t kHalves = bits == 4 ? 2 : 1;
  codes += word * kPanelColumns;
  fetch_ahead<2048, parts>(codes);
#pragma GCC unroll 2
  for (int64_t half = 0; half < kHalves; ++half) {
    typename Sums::Codes of_part[parts];
#pragma GCC unroll 4
    for (int64_t part = 0; part < parts; ++part) {
      auto loaded = load_register<RegisterWords>(codes + part * kRegisterLanes);
      if constexpr (bits == 4) loaded = ((loaded ^ 0x88888888u) >> (4 * half)) & 0x0f0f0f0fu;
      of_part[part] = Sums::prepared(loaded);
    }
#pragma GCC unroll 8
    for (int64_t row = 0; row < rows; ++row) {
      const RegisterWords of_row = all_words(a[row * stride_a].codes + 4 * (word * kHalves + half));
#pragma GCC unroll 4
      for (int64_t part = 0; part < parts; ++part) {
        sums[row][part].add(of_part[part], of_row);
        keep_in_order(sums[row][part].sums);
      }
    }
  }
}

// C += A codes of `parts` registers of columns, each block of a row scaled; nibbles also by group.
template <int bits, int64_t rows, int64_t parts, bool offsets>
__attribute__((noinline)) void dot_block(const RoundedBlock* a, int64_t stride_a,
                                         const uint32_t* codes, const NibbleGroups& groups,
                                         float* c, int64_t stride_c, int64_t k) {
  constexpr int64_t kPerWord = 32 / bits;
  constexpr int64_t kWords = kRoundedInputs / kPerWord;
  const int64_t group_blocks = bits == 4 ? groups.inputs / kRoundedInputs : 1;
  const c10::BFloat16* scales = groups.scales;
  const c10::BFloat16* of_offsets = groups.offsets;
  int64_t rest_of_group = group_blocks;
  for (int64_t first = 0; first < k;
       first += kRoundedInputs, ++a, codes += kWords * kPanelColumns) {
    using Sums = BlockSums<bits>;
    Sums sums[rows][parts];
#pragma GCC unroll 8
    for (int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 4
      for (int64_t part = 0; part < parts; ++part) sums[row][part] = Sums(a[row * stride_a]);
    }
    if (first + kRoundedInputs <= k) {
#pragma GCC unroll 8
      for (int64_t word = 0; word < kWords; ++word) add_word(a, stride_a, codes, word, sums);
    } else {
      for (int64_t word = 0; first + word * kPerWord < k; ++word)
        add_word(a, stride_a, codes, word, sums);
    }
#pragma GCC unroll 4
    for (int64_t part = 0; part < parts; ++part) {
      RegisterFloats scale, offset;
      if constexpr (bits == 4) {
        scale = load_wide(scales + part * kRegisterLanes);
        if constexpr (offsets) offset = load_wide(of_offsets + part * kRegisterLanes);
      }
#pragma GCC unroll 8
      for (int64_t row = 0; row < rows; ++row) {
        float* to = c + row * stride_c + part * kRegisterLanes;
        const RoundedBlock& block = a[row * stride_a];
        auto total = load_register<RegisterFloats>(to);
        auto sum = __builtin_convertvector(sums[row][part].total(), RegisterFloats);
        const RegisterFloats of_row = block.scale - RegisterFloats{};
        if constexpr (bits == 4) {
          if constexpr (offsets) total = fused(offset, block.sum - RegisterFloats{}, total);
          total = fused(scale, sum * of_row, total);
        } else {
          total = fused(of_row, sum, total);
        }
        __builtin_memcpy(to, &total, sizeof total);
      }
    }
    if (bits == 8 || --rest_of_group > 0) continue;
    rest_of_group = group_blocks;
    scales += kPanelColumns;
    if (offsets) of_offsets += kPanelColumns;
  }
}

template <int bits, int64_t rows>
inline void dot_rows(int64_t count, const RoundedBlock* a, int64_t stride_a, const uint32_t* codes,
                     const NibbleGroups& groups, float* c, int64_t stride_c, int64_t k) {
  if constexpr (rows > 0) {
    if (count < rows)
      return dot_rows<bits, rows - 1>(count, a, stride_a, codes, groups, c, stride_c, k);
    constexpr int64_t kParts = kDotParts<rows>;
    for (int64_t part = 0; part < kRegistersOfRow; part += kParts) {
      NibbleGroups of_part = groups;
      const int64_t columns = part * kRegisterLanes;
      if (bits == 4) {
        of_part.scales += columns;
        if (groups.offsets != nullptr) of_part.offsets += columns;
      }
      const auto block = bits == 4 && groups.offsets != nullptr
                             ? dot_block<bits, rows, kParts, bits == 4>
                             : dot_block<bits, rows, kParts, false>;
      block(a, stride_a, codes + columns, of_part, c + columns, stride_c, k);
    }
  }
}

template <int bits>
void multiply_rounded(ByteRows a, CodedView b, const NibbleGroups& groups, float* c,
                      int64_t stride_c, GemmShape shape, bool accumulate) {
  for (int64_t column = 0; column < shape.n; column += kPanelColumns, c += kPanelColumns) {
    const NibbleGroups of_panel = bits == 4 ? groups.from_column(column) : groups;
    for (int64_t row = 0; row < shape.m && !accumulate; ++row)
      std::fill_n(c + row * stride_c, kPanelColumns, 0.0f);
    for (int64_t row = 0; row < shape.m; row += kDotRows)
      dot_rows<bits, kDotRows>(std::min(kDotRows, shape.m - row), a.blocks + row * a.stride,
                               a.stride, b.codes, of_panel, c + row * stride_c, stride_c, shape.k);
    b.codes += b.panel_stride;
  }
}
