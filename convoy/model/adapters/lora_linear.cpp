// SPDX-License-Identifier: Apache-2.0
//
// Numerics: A and B are fp32 leaves; products run in the dtype of x with sums in fp32. On the CPU
// B A x is added before W x is rounded, devices round W x first. The gradients of A and B are not
// rounded on CPUs and by cuBLAS; other devices round them to the dtype of x.
#include "convoy/model/adapters/lora_linear.h"

#include <utility>

#include "convoy/core/base/hash.h"
#include "convoy/model/kernels/dropout/dropout.h"
#include "convoy/model/kernels/frozen_linear/frozen_linear.h"
#include "convoy/model/kernels/matrix_product/matrix_product.h"
#include "convoy/model/kernels/ops/autograd.h"

namespace convoy::adapters {
namespace {

struct LoraTerms {
  kernels::FrozenLinear base;
  double scaling;
  double dropout;
  uint64_t drop_key;
};

at::Tensor two_dimensional(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

at::Tensor shaped_like(const at::Tensor& rows, at::IntArrayRef sizes) {
  std::vector<int64_t> shape = sizes.vec();
  shape.back() = rows.size(1);
  return rows.reshape(shape);
}

// Gradients of x, A and B. `saved`: x, B A's middle product, A and scaling * B in the type of x.
std::vector<at::Tensor> lora_gradients(const LoraTerms& terms, const at::Tensor& grad,
                                       const std::vector<at::Tensor>& saved, bool wants_x) {
  const at::Tensor& x_TI = saved[0];
  const at::Tensor& u_TR = saved[1];
  const at::Tensor& a_RI = saved[2];
  const at::Tensor& b_OR = saved[3];
  const at::Tensor grad_TO = two_dimensional(grad);
  const auto drop = [&](const at::Tensor& values) {
    return kernels::drop(values, terms.dropout, terms.drop_key);
  };
  const at::Tensor grad_u_TR = kernels::matrix_product({{grad_TO, b_OR}});
  const at::Tensor grad_b_OR =
      kernels::matrix_product({{grad_TO.t(), u_TR}}, {.factor = terms.scaling, .wide = true});
  const at::Tensor grad_a_RI =
      kernels::matrix_product({{grad_u_TR.t(), drop(x_TI)}}, {.wide = true});
  if (!wants_x) return {at::Tensor(), grad_a_RI, grad_b_OR};
  at::Tensor grad_x;
  if (terms.dropout > 0)
    grad_x =
        terms.base.input_gradient(grad_TO).add_(drop(kernels::matrix_product({{grad_u_TR, a_RI}})));
  else
    grad_x = terms.base.input_gradient(grad_TO, {grad_u_TR, a_RI});
  return {shaped_like(grad_x, grad.sizes()), grad_a_RI, grad_b_OR};
}

// `leaves`: A and B. `a_RI`, `b_OR`: A and scaling * B in the type of x.
at::Tensor lora(const at::Tensor& x, const std::array<at::Tensor, 2>& leaves,
                const at::Tensor& a_RI, const at::Tensor& b_OR, LoraTerms terms) {
  const bool records = kernels::records_gradient({x, leaves[0], leaves[1]});
  const at::NoGradGuard no_grad;
  const at::Tensor x_TI = two_dimensional(x).contiguous();
  const at::Tensor u_TR =
      kernels::matrix_product({{kernels::drop(x_TI, terms.dropout, terms.drop_key), a_RI.t()}});
  const at::Tensor y_TO = terms.base.product(x_TI, {u_TR, b_OR.t()});
  const at::Tensor y = shaped_like(y_TO, x.sizes());
  if (!records) return y;
  return kernels::with_backward(
      y, {.op = "lora",
          .inputs = {x, leaves[0], leaves[1]},
          .saved = {x_TI, u_TR, a_RI, b_OR},
          .gradients = [terms = std::move(terms)](const at::Tensor& grad,
                                                  const std::vector<at::Tensor>& saved,
                                                  const std::vector<bool>& wanted) {
            return lora_gradients(terms, grad, saved, wanted[0]);
          }});
}

}  // namespace

LoraLinear::LoraLinear(at::Tensor a_RI, at::Tensor b_OR, at::Tensor magnitude_O, double scaling,
                       Dropout dropout)
    : a_RI_(std::move(a_RI)),
      b_OR_(std::move(b_OR)),
      magnitude_O_(std::move(magnitude_O)),
      scaling_(scaling),
      dropout_(dropout) {}

at::Tensor LoraLinear::forward(const nn::Linear& base, const at::Tensor& x,
                               nn::DrawKey draw_key) const {
  const uint64_t words[] = {draw_key.value_or(0), dropout_.key};
  const double share = draw_key ? dropout_.share : 0.0;
  const uint64_t key = share > 0 ? mix_seed(words) : 0;
  if (magnitude_O_.defined()) return dora_forward(base, x, share, key);
  const Factors& factors = factors_of(x.scalar_type());
  return lora(x, {a_RI_, b_OR_}, factors.a_RI, factors.b_OR,
              {.base = base.frozen(), .scaling = scaling_, .dropout = share, .drop_key = key});
}

void LoraLinear::add_to(const at::Tensor& y_TO, const at::Tensor& x_TI) const {
  const at::NoGradGuard no_grad;
  const Factors& factors = factors_of(x_TI.scalar_type());
  const at::Tensor u_TR = kernels::matrix_product({{x_TI, factors.a_RI.t()}});
  y_TO.addmm_(u_TR, factors.b_OR.t());
}

const LoraLinear::Factors& LoraLinear::factors_of(at::ScalarType dtype) const {
  const std::array<int64_t, 2> versions = {a_RI_._version(), b_OR_._version()};
  if (factors_.a_RI.defined() && factors_.a_RI.scalar_type() == dtype &&
      factors_.versions == versions)
    return factors_;
  const at::NoGradGuard no_grad;
  factors_ = {a_RI_.detach().to(dtype), (b_OR_ * scaling_).to(dtype), versions};
  return factors_;
}

at::Tensor LoraLinear::dora_forward(const nn::Linear& base, const at::Tensor& x, double share,
                                    uint64_t key) const {
  const at::ScalarType dtype = x.scalar_type();
  const at::Tensor result = base.base_forward(x);
  const at::Tensor dropped = share > 0 ? kernels::dropout(x, share, key) : x;
  at::Tensor plain = share > 0 ? base.base_forward(dropped) : result;
  if (base.bias().defined()) plain = plain - base.bias();
  const at::Tensor share_O = (magnitude_O_ / norm(base)).to(dtype);
  const at::Tensor low_rank =
      at::matmul(at::matmul(dropped, a_RI_.to(dtype).t()), b_OR_.to(dtype).t());
  return result + (share_O - 1) * plain + share_O * low_rank * scaling_;
}

const at::Tensor& LoraLinear::norm(const nn::Linear& base) const {
  const at::Tensor& weight_OI = base.weight();
  const std::array<int64_t, 3> versions = {weight_OI._version(), a_RI_._version(),
                                           b_OR_._version()};
  if (norm_.value_O.defined() && norm_.weight_OI.is_same(weight_OI) && norm_.versions == versions)
    return norm_.value_O;
  const at::NoGradGuard no_grad;
  const at::Tensor sum_OI = at::addmm(base.values().to(at::kFloat), b_OR_, a_RI_, 1.0, scaling_);
  norm_ = {at::linalg_vector_norm(sum_OI, 2, {1}), weight_OI, versions};
  return norm_.value_O;
}

at::Tensor LoraLinear::merged_weight(const at::Tensor& weight_OI) const {
  const at::NoGradGuard no_grad;
  const at::Tensor sum_OI = at::addmm(weight_OI.to(at::kFloat), b_OR_, a_RI_, 1.0, scaling_);
  if (!magnitude_O_.defined()) return sum_OI;
  const at::Tensor norm_O = at::linalg_vector_norm(sum_OI, 2, {1});
  return sum_OI * (magnitude_O_ / norm_O).unsqueeze(1);
}

}  // namespace convoy::adapters
