// SPDX-License-Identifier: Apache-2.0
//
// Products of rows rounded to 8 bits with the codes of a quantised weight, one table per
// instruction set. The tables have levels of their own, since the instruction that adds four
// products of bytes (VNNI) came at other times than wider registers. Single-threaded; callers split
// work. A row's bits do not depend on other rows.
#pragma once

#include <string_view>
#include <vector>

#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels {

// Inputs of a row that are rounded together.
inline constexpr int64_t kRoundedInputs = 32;

// x = scale * code; the scale is NaN where an x is not finite. Only the table that made a block
// knows the order of its codes and the start of its sums.
struct RoundedBlock {
  float scale = 0;
  float sum = 0;  // sum of scale * code
  int32_t start = 0;
  int8_t codes[kRoundedInputs] = {};
};

constexpr int64_t rounded_blocks(int64_t inputs) {
  return (inputs + kRoundedInputs - 1) / kRoundedInputs;
}

struct ByteRows {
  const RoundedBlock* blocks = nullptr;
  int64_t stride = 0;  // blocks from row to row
};

template <class Element>
struct IntegerDots {
  std::string_view name;
  // Writes the blocks of a row for one of the products. The scale of a block is its largest
  // magnitude / 127, codes are the nearest.
  void (*round_for_bytes)(const Element* values, int64_t count, RoundedBlock* blocks);
  void (*round_for_nibbles)(const Element* values, int64_t count, RoundedBlock* blocks);
  // The same as SimdKernels::multiply_bytes and multiply_nibbles. `row_sums` of the groups are not
  // read.
  void (*multiply_bytes)(ByteRows a, CodedView b, const NibbleGroups& unused, float* c,
                         int64_t stride_c, GemmShape shape, bool accumulate);
  void (*multiply_nibbles)(ByteRows a, CodedView b, const NibbleGroups& groups, float* c,
                           int64_t stride_c, GemmShape shape, bool accumulate);
};

// Every table that this machine can run below the level of best_cpu_isa(), the fastest last.
template <class Element>
std::vector<const IntegerDots<Element>*> usable_integer_dots();
// The fastest usable table.
template <class Element>
const IntegerDots<Element>& integer_dots();

}  // namespace convoy::kernels
