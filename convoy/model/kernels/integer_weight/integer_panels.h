// SPDX-License-Identifier: Apache-2.0
//
// A quantised weight as the right side of the CPU's products. Codes are multiplied as whole numbers
// and their sums scaled, group by group, so rounding affects only the stored results and, in some
// formats, the rows. The sum of an element runs over k in one order whatever the other rows are.
// Copies share the memory.
#pragma once

#include <memory>
#include <vector>

#include "convoy/model/kernels/integer_weight/integer_weight.h"
#include "convoy/model/kernels/simd/integer_dots.h"
#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels {

class IntegerPanels {
 public:
  explicit IntegerPanels(const IntegerWeight& weight);

  int64_t inner() const { return inner_; }      // I
  int64_t columns() const { return columns_; }  // O
  at::Tensor values() const;                    // [O, I] of the weight's dtype

  // Sums of the inputs of each group, fp32 [rows, G], by which offsets are multiplied; undefined
  // where the format has no offsets.
  at::Tensor group_sums(const at::Tensor& a_MK) const;

  // The rows in blocks of 8 bits; undefined where products read their values.
  at::Tensor rounded_rows(const at::Tensor& a_MK) const;
  int64_t blocks_per_row() const { return rounded_blocks(inner_); }

  // Memory of one thread.
  using Scratch = std::vector<float>;

  template <class Element>
  struct Rows {
    const Element* a = nullptr;
    int64_t stride_a = 0;
    const float* group_sums = nullptr;  // begins at the first row; null if there are no offsets
    const RoundedBlock* rounded = nullptr;
    int64_t count = 0;
  };

  // C [rows, round_up(columns, kPanelColumns)] = A W^T, or C += A W^T, of the columns from `column`
  // on, a multiple of kPanelColumns.
  template <class Element>
  void multiply(const Rows<Element>& rows, int64_t column, int64_t columns, float* c,
                int64_t stride_c, bool accumulate, Scratch& scratch) const;

 private:
  bool rounds_rows() const { return format_.activations == ActivationFormat::Int8; }
  bool is_int8() const { return format_.weight == WeightFormat::Int8; }
  int64_t codes_per_word() const { return is_int8() ? 4 : 8; }
  int64_t group_inputs() const { return is_int8() ? inner_ : format_.group_inputs; }

  IntegerFormat format_;
  at::ScalarType dtype_;
  int64_t inner_;
  int64_t columns_;
  int64_t num_groups_;
  int64_t words_per_panel_;
  at::Tensor words_;    // int32 [panels, words of k, 32]
  at::Tensor scales_;   // [panels, G, 32], fp32 for Int8 and else bf16
  at::Tensor offsets_;  // as scales_ for Int4Zero; else undefined
  // Addresses of the tensors' memory. To ask a tensor for its address takes a twentieth of the time
  // of a row's product.
  const uint32_t* codes_;
  const void* scale_values_;
  const at::BFloat16* offset_values_ = nullptr;
};

}  // namespace convoy::kernels
