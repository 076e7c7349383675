// SPDX-License-Identifier: Apache-2.0
//
// Numerics: A and B are fp32 leaves; products run in the dtype of x, so bf16 runs use bf16 GEMMs and the adapter
// gradients are rounded to bf16 once per micro-batch before they are summed in fp32.
#include "convoy/adapters/lora_linear.h"

#include <utility>

#include "convoy/base/error.h"
#include "convoy/kernels/frozen_linear/frozen_linear.h"

namespace convoy::adapters {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct LoraTerms {
  const kernels::FrozenLinear* base;
  double scaling;
  double dropout;
};

class LoraFunction : public torch::autograd::Function<LoraFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& a_RI,
                            const at::Tensor& b_OR, const LoraTerms& terms) {
    const at::Tensor x_TI = x.reshape({-1, x.size(-1)});
    at::Tensor mask_TI;
    at::Tensor dropped_TI = x_TI;
    if (terms.dropout > 0)
      std::tie(dropped_TI, mask_TI) = at::native_dropout(x_TI, terms.dropout, true);
    at::Tensor y_TO = terms.base->forward(x_TI);
    const at::Tensor u_TR = at::mm(dropped_TI, a_RI.to(x.scalar_type()).t());
    y_TO.addmm_(u_TR, b_OR.to(x.scalar_type()).t(), 1.0, terms.scaling);
    context->save_for_backward({x_TI, mask_TI, u_TR, a_RI, b_OR});
    context->saved_data["base"] = reinterpret_cast<int64_t>(terms.base);
    context->saved_data["scaling"] = terms.scaling;
    context->saved_data["dropout"] = terms.dropout;
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = y_TO.size(1);
    return y_TO.reshape(shape);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x_TI = saved[0];
    const at::Tensor& mask_TI = saved[1];
    const at::Tensor& u_TR = saved[2];
    const at::Tensor a_RI = saved[3].to(x_TI.scalar_type());
    const at::Tensor b_OR = saved[4].to(x_TI.scalar_type());
    const double scaling = context->saved_data["scaling"].toDouble();
    const double dropout = context->saved_data["dropout"].toDouble();
    const auto* base =
        reinterpret_cast<const kernels::FrozenLinear*>(context->saved_data["base"].toInt());
    const at::Tensor grad_TO = gradients[0].reshape({-1, gradients[0].size(-1)});

    const double keep_scale = dropout > 0 ? 1.0 / (1.0 - dropout) : 1.0;
    const at::Tensor grad_u_TR = at::mm(grad_TO, b_OR).mul_(scaling);
    const at::Tensor grad_b_OR = at::mm(grad_TO.t(), u_TR).mul_(scaling).to(at::kFloat);
    const at::Tensor dropped_TI =
        mask_TI.defined() ? at::native_dropout_backward(x_TI, mask_TI, keep_scale) : x_TI;
    const at::Tensor grad_a_RI = at::mm(grad_u_TR.t(), dropped_TI).to(at::kFloat);

    at::Tensor grad_x;
    if (context->needs_input_grad(0)) {
      grad_x = base->input_gradient(grad_TO);
      if (mask_TI.defined())
        grad_x.add_(at::native_dropout_backward(at::mm(grad_u_TR, a_RI), mask_TI, keep_scale));
      else
        grad_x.addmm_(grad_u_TR, a_RI);
      std::vector<int64_t> shape = gradients[0].sizes().vec();
      shape.back() = grad_x.size(1);
      grad_x = grad_x.reshape(shape);
    }
    return {grad_x, grad_a_RI, grad_b_OR, at::Tensor()};
  }
};

}  // namespace

LoraLinear::LoraLinear(at::Tensor a_RI, at::Tensor b_OR, at::Tensor magnitude_O, double scaling,
                       double dropout)
    : a_RI_(std::move(a_RI)),
      b_OR_(std::move(b_OR)),
      magnitude_O_(std::move(magnitude_O)),
      scaling_(scaling),
      dropout_(dropout) {}

at::Tensor LoraLinear::forward(const nn::Linear& base, const at::Tensor& x) const {
  if (magnitude_O_.defined()) return dora_forward(base, x);
  return LoraFunction::apply(x, a_RI_, b_OR_,
                             LoraTerms{&base.frozen(), scaling_, training_ ? dropout_ : 0.0});
}

at::Tensor LoraLinear::dora_forward(const nn::Linear& base, const at::Tensor& x) const {
  const at::ScalarType dtype = x.scalar_type();
  const at::Tensor result = base.base_forward(x);
  const bool drops = training_ && dropout_ > 0;
  const at::Tensor dropped = drops ? at::dropout(x, dropout_, true) : x;
  at::Tensor plain = drops ? base.base_forward(dropped) : result;
  if (base.bias().defined()) plain = plain - base.bias();
  at::Tensor norm_O;
  {
    const at::NoGradGuard no_grad;
    norm_O = at::linalg_vector_norm(
        at::addmm(base.weight().to(at::kFloat), b_OR_, a_RI_, 1.0, scaling_), 2, {1});
  }
  const at::Tensor share_O = (magnitude_O_ / norm_O).to(dtype);
  const at::Tensor low_rank =
      at::matmul(at::matmul(dropped, a_RI_.to(dtype).t()), b_OR_.to(dtype).t());
  return result + (share_O - 1) * plain + share_O * low_rank * scaling_;
}

at::Tensor LoraLinear::merged_weight(const at::Tensor& weight_OI) const {
  const at::NoGradGuard no_grad;
  const at::Tensor sum_OI = at::addmm(weight_OI.to(at::kFloat), b_OR_, a_RI_, 1.0, scaling_);
  if (!magnitude_O_.defined()) return sum_OI;
  const at::Tensor norm_O = at::linalg_vector_norm(sum_OI, 2, {1});
  return sum_OI * (magnitude_O_ / norm_O).unsqueeze(1);
}

}  // namespace convoy::adapters
