// SPDX-License-Identifier: Apache-2.0
//
// matrix_product of CPU tensors, for repeated products with one matrix. An element's sum runs over
// k in one order whatever the other rows and the number of threads are, so its bits depend on
// neither.
#pragma once

#include "convoy/model/kernels/matrix_product/matrix_product.h"

namespace convoy::kernels {

// The right side of a product in the order in which the loops read it. Products pack a matrix block
// by block as they read it, at a cost that is little beside hundreds of rows; for few rows it is
// packed once and kept. Copies share the memory.
class PanelMatrix {
 public:
  explicit PanelMatrix(const at::Tensor& b_KN);  // rows or columns contiguous

  const at::Tensor& panels() const { return panels_; }

 private:
  at::Tensor panels_;
};

class IntegerPanels;
struct BitsandbytesWeight;

// A coded weight W as b: its transpose, with outputs as columns, or itself. It is decoded block by
// block as the product reads it.
struct BitsandbytesTerm {
  const BitsandbytesWeight* weight = nullptr;
  bool transposed = false;
};

// b is a plain matrix, perhaps with a packed copy, or a quantised weight, or a coded weight.
struct PanelTerm {
  at::Tensor a_MK;  // rows contiguous
  at::Tensor b_KN;  // rows or columns contiguous
  const PanelMatrix* packed = nullptr;
  const IntegerPanels* quantized = nullptr;
  BitsandbytesTerm coded = {};
};
at::Tensor panel_product(const std::vector<PanelTerm>& terms, const ProductOptions& options = {});

// int64 [M]: for each row of the product the column of the largest of the first `num_columns` sums,
// in fp32. Of equal sums the first counts; -1 where the largest sum is not finite or a sum is NaN.
// The product itself never exists.
at::Tensor panel_argmax(const std::vector<PanelTerm>& terms, const at::Tensor& bias_N,
                        int64_t num_columns);

// The matrix itself, or a copy of it whose rows are contiguous.
at::Tensor in_rows(const at::Tensor& matrix);

}  // namespace convoy::kernels
