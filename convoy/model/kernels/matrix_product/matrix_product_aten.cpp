// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/matrix_product/matrix_product_ops.h"
#include "convoy/model/kernels/ops/cuda_devices.h"

namespace convoy::kernels {
namespace {

// cuBLAS can write a single product of bf16 in fp32, so the result is not rounded to bf16 before.
bool is_written_wide(const std::vector<ProductTerm>& terms, const ProductOptions& options) {
  return options.wide && terms.size() == 1 && !options.bias_N.defined() &&
         terms.front().a_MK.scalar_type() == at::kBFloat16 &&
         takes_cuda_ops(terms.front().a_MK.device());
}

at::Tensor sum_of(const std::vector<ProductTerm>& terms, const at::Tensor& bias_N) {
  at::Tensor sum;
  for (const auto& [a_MK, b_KN] : terms) {
    if (sum.defined())
      sum.addmm_(a_MK, b_KN);
    else if (bias_N.defined())
      sum = at::addmm(bias_N, a_MK, b_KN);
    else
      sum = at::mm(a_MK, b_KN);
  }
  return sum;
}

at::Tensor written_wide(const ProductTerm& term, double factor) {
  const auto& [a_MK, b_KN] = term;
  if (factor == 1.0) return at::mm(a_MK, b_KN, at::kFloat);
  at::Tensor product = at::empty({a_MK.size(0), b_KN.size(1)}, a_MK.options().dtype(at::kFloat));
  return at::addmm_out(product, product, a_MK, b_KN, at::kFloat, /*beta=*/0, /*alpha=*/factor);
}

// The product itself applies the factor and writes rows with a stride.
at::Tensor written(const ProductTerm& term, const ProductOptions& options) {
  const auto& [a_MK, b_KN] = term;
  at::Tensor product = options.into.defined()
                           ? options.into
                           : at::empty({a_MK.size(0), b_KN.size(1)}, a_MK.options());
  return at::addmm_out(product, product, a_MK, b_KN, /*beta=*/0, /*alpha=*/options.factor);
}

at::Tensor product(const std::vector<ProductTerm>& terms, const ProductOptions& options) {
  if (is_written_wide(terms, options) && !options.into.defined())
    return written_wide(terms.front(), options.factor);
  if (terms.size() == 1 && !options.bias_N.defined() && !options.wide &&
      (options.factor != 1.0 || options.into.defined()))
    return written(terms.front(), options);
  at::Tensor sum = sum_of(terms, options.bias_N);
  if (options.factor != 1.0) sum.mul_(options.factor);
  if (options.into.defined()) return at::Tensor(options.into).copy_(sum);
  return options.wide ? sum.to(at::kFloat) : sum;
}

}  // namespace

const MatrixProductOps kMatrixProductAten = {product};

}  // namespace convoy::kernels
