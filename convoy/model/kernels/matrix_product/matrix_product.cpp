// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/matrix_product/matrix_product.h"

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/matrix_product/matrix_product_ops.h"
#include "convoy/model/kernels/ops/autograd.h"

namespace convoy::kernels {
namespace {

bool lies_in_rows_or_columns(const at::Tensor& matrix) {
  return matrix.stride(0) == 1 || matrix.stride(1) == 1 || matrix.size(0) == 1 ||
         matrix.size(1) == 1 || matrix.numel() == 0;
}

void check(const std::vector<ProductTerm>& terms, const at::Tensor& bias_N) {
  CONVOY_INVARIANT(!terms.empty(), "matrix_product needs a term");
  const at::Tensor& first = terms.front().a_MK;
  const at::Tensor& last = terms.front().b_KN;
  for (const auto& [a_MK, b_KN] : terms) {
    CONVOY_INVARIANT(a_MK.dim() == 2 && b_KN.dim() == 2 && a_MK.size(1) == b_KN.size(0) &&
                         a_MK.size(0) == first.size(0) && b_KN.size(1) == last.size(1),
                     "matrix_product needs terms [M, K] [K, N] of one M and N");
    CONVOY_INVARIANT(
        a_MK.scalar_type() == first.scalar_type() && b_KN.scalar_type() == first.scalar_type(),
        "matrix_product needs terms of one type");
    CONVOY_INVARIANT(lies_in_rows_or_columns(a_MK) && lies_in_rows_or_columns(b_KN),
                     "matrix_product needs matrices whose rows or columns are contiguous");
  }
  CONVOY_INVARIANT(!bias_N.defined() || (bias_N.is_contiguous() && bias_N.dim() == 1 &&
                                         bias_N.size(0) == last.size(1) &&
                                         bias_N.scalar_type() == first.scalar_type()),
                   "matrix_product needs a bias of {} values of the terms' type", last.size(1));
}

at::Tensor in_rows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

at::Tensor shaped_like(const at::Tensor& rows, at::IntArrayRef sizes) {
  std::vector<int64_t> shape = sizes.vec();
  shape.back() = rows.size(1);
  return rows.view(shape);
}

}  // namespace

at::Tensor matrix_product(const std::vector<ProductTerm>& terms, const ProductOptions& options) {
  check(terms, options.bias_N);
  CONVOY_INVARIANT(!options.into.defined() || (options.into.size(0) == terms.front().a_MK.size(0) &&
                                               options.into.size(1) == terms.front().b_KN.size(1)),
                   "matrix_product needs room for its result");
  const at::NoGradGuard no_grad;
  return matrix_product_ops(terms.front().a_MK.device()).product(terms, options);
}

at::Tensor trained_linear(const at::Tensor& x, const at::Tensor& weight_OI,
                          const at::Tensor& bias_O) {
  return trained_linears(x, {{weight_OI, bias_O}})[0];
}

std::vector<at::Tensor> trained_linears(const at::Tensor& x, const std::vector<TrainedMap>& maps) {
  std::vector<at::Tensor> inputs = {x}, outputs;
  for (const auto& [weight_OI, bias_O] : maps) inputs.insert(inputs.end(), {weight_OI, bias_O});
  const bool records = std::any_of(inputs.begin(), inputs.end(), [](const at::Tensor& input) {
    return records_gradient({input});
  });
  const at::NoGradGuard no_grad;
  const at::Tensor x_TI = in_rows(x).contiguous();
  std::vector<at::Tensor> saved = {x_TI};
  for (const auto& [weight_OI, bias_O] : maps) {
    outputs.push_back(shaped_like(
        matrix_product({{x_TI, weight_OI.detach().t()}}, {.bias_N = bias_O}), x.sizes()));
    saved.push_back(weight_OI);
  }
  if (!records) return outputs;
  return with_backward(outputs,
                       {.op = "trained_linear",
                        .inputs = std::move(inputs),
                        .saved = std::move(saved),
                        .gradients = [sizes = x.sizes().vec()](const std::vector<at::Tensor>& grads,
                                                               const std::vector<at::Tensor>& kept,
                                                               const std::vector<bool>& wanted) {
                          std::vector<at::Tensor> gradients(wanted.size());
                          std::vector<ProductTerm> of_x;
                          for (size_t map = 0; map < grads.size(); ++map) {
                            if (!grads[map].defined()) continue;
                            const at::Tensor grad_TO = in_rows(grads[map]).contiguous();
                            of_x.push_back({grad_TO, kept[1 + map]});
                            if (wanted[1 + 2 * map])
                              gradients[1 + 2 * map] = matrix_product({{grad_TO.t(), kept[0]}});
                            if (wanted[2 + 2 * map])
                              gradients[2 + 2 * map] =
                                  grad_TO.sum({0}, false, at::kFloat).to(grad_TO.scalar_type());
                          }
                          if (wanted[0]) gradients[0] = matrix_product(of_x).view(sizes);
                          return gradients;
                        }});
}

}  // namespace convoy::kernels
