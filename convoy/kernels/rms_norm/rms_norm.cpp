// SPDX-License-Identifier: Apache-2.0
//
// One pass forward, keeping 1/rms per row; one pass backward. The weight's gradient is summed over
// parts of rows that do not depend on the number of threads.
#include "convoy/kernels/rms_norm/rms_norm.h"

#include "convoy/base/error.h"
#include "convoy/kernels/simd/element.h"
#include "convoy/kernels/simd/simd_kernels.h"

namespace convoy::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kRowsPerPart = 64;

RowShape shape_of(const at::Tensor& x) {
  const int64_t width = x.size(-1);
  return {.rows = width == 0 ? 0 : x.numel() / width, .width = width};
}

NormParameters parameters_of(double epsilon, NormOrder order) {
  return {.epsilon = static_cast<float>(epsilon),
          .scale_by_one_plus = order == NormOrder::ScaleByOnePlusThenCast};
}

// `inverse_rms` may be undefined.
at::Tensor run_forward(const at::Tensor& x, const at::Tensor& weight_D,
                       const at::Tensor& inverse_rms, NormParameters parameters) {
  at::Tensor y = at::empty(x.sizes(), x.options());
  const RowShape shape = shape_of(x);
  float* inverse = inverse_rms.defined() ? inverse_rms.mutable_data_ptr<float>() : nullptr;
  with_element(x, "rms_norm", [&](auto element) {
    using Element = decltype(element);
    const auto* from = x.const_data_ptr<Element>();
    const auto* weight = weight_D.const_data_ptr<Element>();
    auto* to = y.mutable_data_ptr<Element>();
    for_rows(shape.rows, shape.width, [&](int64_t begin, int64_t end) {
      const int64_t at = begin * shape.width;
      simd_kernels<Element>().rms_norm(from + at, weight, to + at,
                                       inverse == nullptr ? nullptr : inverse + begin,
                                       {end - begin, shape.width}, parameters);
    });
  });
  return y;
}

struct NormGradients {
  at::Tensor x;
  at::Tensor weight_D;  // undefined unless wanted
};

NormGradients run_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight_D,
                           const at::Tensor& inverse_rms, NormParameters parameters,
                           bool wants_weight) {
  const RowShape shape = shape_of(x);
  const int64_t parts = (shape.rows + kRowsPerPart - 1) / kRowsPerPart;
  NormGradients gradients{.x = at::empty(x.sizes(), x.options()), .weight_D = {}};
  at::Tensor sums_PD;
  if (wants_weight) sums_PD = at::zeros({parts, shape.width}, x.options().dtype(at::kFloat));
  with_element(x, "rms_norm", [&](auto element) {
    using Element = decltype(element);
    const auto* incoming = grad.const_data_ptr<Element>();
    const auto* from = x.const_data_ptr<Element>();
    const auto* weight = weight_D.const_data_ptr<Element>();
    const auto* inverse = inverse_rms.const_data_ptr<float>();
    auto* to = gradients.x.mutable_data_ptr<Element>();
    float* sums = wants_weight ? sums_PD.mutable_data_ptr<float>() : nullptr;
    for_rows(parts, shape.width * kRowsPerPart, [&](int64_t first_part, int64_t end_part) {
      for (int64_t part = first_part; part < end_part; ++part) {
        const int64_t begin = part * kRowsPerPart;
        const int64_t at = begin * shape.width;
        simd_kernels<Element>().rms_norm_backward(
            incoming + at, from + at, weight, inverse + begin, to + at,
            sums == nullptr ? nullptr : sums + part * shape.width,
            {std::min(kRowsPerPart, shape.rows - begin), shape.width}, parameters);
      }
    });
  });
  if (wants_weight) gradients.weight_D = sums_PD.sum(0).to(weight_D.scalar_type());
  return gradients;
}

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight_D, double epsilon, bool scale_by_one_plus) {
    const NormParameters parameters{static_cast<float>(epsilon), scale_by_one_plus};
    at::Tensor inverse_rms = at::empty({shape_of(x).rows}, x.options().dtype(at::kFloat));
    at::Tensor y = run_forward(x, weight_D, inverse_rms, parameters);
    context->save_for_backward({x, weight_D, inverse_rms});
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["scale_by_one_plus"] = scale_by_one_plus;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const NormParameters parameters{static_cast<float>(context->saved_data["epsilon"].toDouble()),
                                    context->saved_data["scale_by_one_plus"].toBool()};
    NormGradients gradients = run_backward(grads[0].contiguous(), saved[0], saved[1], saved[2],
                                           parameters, saved[1].requires_grad());
    return {gradients.x, gradients.weight_D, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight_D, double epsilon,
                    NormOrder order) {
  CONVOY_INVARIANT(x.is_contiguous() && weight_D.is_contiguous(),
                   "rms_norm wants contiguous inputs");
  CONVOY_INVARIANT(weight_D.scalar_type() == x.scalar_type() && weight_D.numel() == x.size(-1),
                   "rms_norm wants a weight like the last dimension of x");
  const NormParameters parameters = parameters_of(epsilon, order);
  if (!records_gradient({x, weight_D})) return run_forward(x, weight_D, {}, parameters);
  return RmsNormFunction::apply(x, weight_D, epsilon, parameters.scale_by_one_plus);
}

}  // namespace convoy::kernels
