// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/matrix_product/matrix_product_ops.h"
#include "convoy/model/kernels/matrix_product/panel_product.h"

namespace convoy::kernels {
namespace {

at::Tensor product(const std::vector<ProductTerm>& terms, const ProductOptions& options) {
  std::vector<PanelTerm> in_panels;
  in_panels.reserve(terms.size());
  for (const auto& [a_MK, b_KN] : terms) in_panels.push_back({in_rows(a_MK), b_KN});
  const at::Tensor product = panel_product(in_panels, options);
  return options.into.defined() ? at::Tensor(options.into).copy_(product) : product;
}

}  // namespace

const MatrixProductOps kMatrixProductCpu = {product};

}  // namespace convoy::kernels
