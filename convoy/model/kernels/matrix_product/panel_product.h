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

// b is a matrix, of which a packed copy may be there, or quantised alone, or coded.
struct PanelTerm {
  at::Tensor a_MK;  // rows contiguous
  at::Tensor b_KN;  // rows or columns contiguous
  const PanelMatrix* packed = nullptr;
  const IntegerPanels* quantized = nullptr;
  BitsandbytesTerm coded = {};
};
at::Tensor panel_product(const std::vector<PanelTerm>& terms, const ProductOptions& options = {});

// The column of the largest element of each row of the product, of the first `num_columns`, once
// rounded to the terms' type; the first of equal ones, -1 where it is not finite or one is NaN.
// int64 [M]. The product itself never exists.
at::Tensor panel_argmax(const std::vector<PanelTerm>& terms, const at::Tensor& bias_N,
                        int64_t num_columns);

// The matrix itself, or a copy of it whose rows are contiguous.
at::Tensor in_rows(const at::Tensor& matrix);

}  // namespace convoy::kernels
