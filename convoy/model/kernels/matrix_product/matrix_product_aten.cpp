// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/matrix_product/matrix_product_ops.h"

namespace convoy::kernels {
namespace {

at::Tensor product(const std::vector<ProductTerm>& terms, const ProductOptions& options) {
  at::Tensor sum;
  for (const auto& [a_MK, b_KN] : terms) {
    if (sum.defined())
      sum.addmm_(a_MK, b_KN);
    else if (options.bias_N.defined())
      sum = at::addmm(options.bias_N, a_MK, b_KN);
    else
      sum = at::mm(a_MK, b_KN);
  }
  if (options.factor != 1.0) sum.mul_(options.factor);
  return options.wide ? sum.to(at::kFloat) : sum;
}

}  // namespace

const MatrixProductOps kMatrixProductAten = {product};

}  // namespace convoy::kernels
