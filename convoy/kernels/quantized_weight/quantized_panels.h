// SPDX-License-Identifier: Apache-2.0
//
// A quantised weight as the right side of the CPU's products: a part of it at a time becomes panels
// of the model's type, which stay in cache. Copies share the memory.
#pragma once

#include "convoy/kernels/quantized_weight/quantized_weight.h"
#include "convoy/kernels/simd/simd_kernels.h"

namespace convoy::kernels {

class QuantizedPanels {
 public:
  explicit QuantizedPanels(const QuantizedWeight& weight);

  int64_t inner() const { return inner_; }      // I
  int64_t columns() const { return columns_; }  // O
  at::ScalarType dtype() const { return dtype_; }

  // Columns from `column` (a multiple of kPanelColumns) and k from `k` (one of kUnpackedInner) on;
  // `to` holds packed_elements(block).
  template <class Element>
  void unpack(int64_t column, int64_t k, const GemmShape& block, Element* to) const;

  at::Tensor values() const;  // of dtype() [O, I], for products over its columns

  // k of a part that stays in the nearest cache beside what is multiplied by it.
  static constexpr int64_t kUnpackedInner = 256;

 private:
  bool is_int8() const { return format_.weight == WeightFormat::Int8; }
  int64_t num_groups() const;
  template <class Element>
  void unpack_groups(int64_t panel, int64_t k, int64_t count, Element* to) const;

  QuantizedFormat format_;
  at::ScalarType dtype_;
  int64_t inner_;
  int64_t columns_;
  at::Tensor codes_;    // [panels, I, 32 or 16 bytes]
  at::Tensor scales_;   // Int8: fp32 [panels, 32]; else bf16 [panels, G, 32]
  at::Tensor offsets_;  // Int4Zero: bf16 [panels, G, 32]
};

}  // namespace convoy::kernels
