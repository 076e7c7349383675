// SPDX-License-Identifier: Apache-2.0
//
// One pass forward, keeping 1/rms per row; one pass backward. The weight's gradient is summed over
// parts of rows that do not depend on the number of threads.
#include "convoy/core/base/error.h"
#include "convoy/model/kernels/rms_norm/rms_norm_ops.h"
#include "convoy/model/kernels/simd/element.h"
#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels {
namespace {

constexpr int64_t kRowsPerPart = 64;

RowShape shape_of(const at::Tensor& x) {
  const int64_t width = x.size(-1);
  return {.rows = width == 0 ? 0 : x.numel() / width, .width = width};
}

NormParameters parameters_of(double epsilon, NormOrder order) {
  return {.epsilon = static_cast<float>(epsilon),
          .scale_by_one_plus = order == NormOrder::ScaleByOnePlusThenCast};
}

at::Tensor run_forward(const at::Tensor& x, const at::Tensor& weight_D,
                       const at::Tensor& inverse_rms, double epsilon, NormOrder order) {
  const NormParameters parameters = parameters_of(epsilon, order);
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

AddedNorm run_add_forward(const at::Tensor& x, const at::Tensor& added, const at::Tensor& weight_D,
                          const at::Tensor& inverse_rms, double epsilon, NormOrder order) {
  const at::Tensor sum = x + added;
  return {sum, run_forward(sum, weight_D, inverse_rms, epsilon, order)};
}

NormGradients run_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight_D,
                           const at::Tensor& inverse_rms, const at::Tensor& grad_x, NormOrder order,
                           bool wants_weight) {
  const NormParameters parameters = parameters_of(0, order);  // epsilon is in `inverse_rms`
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
  if (grad_x.defined()) gradients.x.add_(grad_x);
  if (wants_weight) gradients.weight_D = sums_PD.sum(0).to(weight_D.scalar_type());
  return gradients;
}

}  // namespace

const RmsNormOps kRmsNormCpu = {run_forward, run_add_forward, run_backward};

}  // namespace convoy::kernels
