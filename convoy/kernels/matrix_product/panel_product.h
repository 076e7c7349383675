// SPDX-License-Identifier: Apache-2.0
//
// matrix_product of CPU tensors, for who multiplies by one matrix often. An element's sum runs over
// k in one order whatever the other rows and the number of threads are, so its bits depend on
// neither.
#pragma once

#include "convoy/kernels/matrix_product/matrix_product.h"

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

struct PanelTerm {
  at::Tensor a_MK;                      // rows contiguous
  at::Tensor b_KN;                      // rows or columns contiguous
  const PanelMatrix* packed = nullptr;  // of b, where it is there
};
at::Tensor panel_product(const std::vector<PanelTerm>& terms, const ProductOptions& options = {});

// The matrix itself, or a copy of it whose rows are contiguous.
at::Tensor in_rows(const at::Tensor& matrix);

}  // namespace convoy::kernels
