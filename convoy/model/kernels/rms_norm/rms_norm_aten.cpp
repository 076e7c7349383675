// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/rms_norm/rms_norm_ops.h"

namespace convoy::kernels {
namespace {

at::Tensor inverse_column(const at::Tensor& inverse_rms, const at::Tensor& x) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = 1;
  return inverse_rms.view(sizes);
}

at::Tensor run_forward(const at::Tensor& x, const at::Tensor& weight_D,
                       const at::Tensor& inverse_rms, double epsilon, NormOrder order) {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor inverse = wide.square().mean({-1}, true).add_(epsilon).rsqrt_();
  if (inverse_rms.defined()) inverse_rms.copy_(inverse.flatten());
  const at::Tensor normal = wide * inverse;
  if (order == NormOrder::CastThenScale) return normal.to(x.scalar_type()).mul(weight_D);
  return normal.mul(weight_D.to(at::kFloat).add(1)).to(x.scalar_type());
}

AddedNorm run_add_forward(const at::Tensor& x, const at::Tensor& added, const at::Tensor& weight_D,
                          const at::Tensor& inverse_rms, double epsilon, NormOrder order) {
  const at::Tensor sum = x + added;
  return {sum, run_forward(sum, weight_D, inverse_rms, epsilon, order)};
}

// With n = x / rms: d(n) = grad * scale, d(x) = (d(n) - n * mean(d(n) * n)) / rms.
NormGradients run_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight_D,
                           const at::Tensor& inverse_rms, const at::Tensor& grad_x, NormOrder order,
                           bool wants_weight) {
  const at::Tensor inverse = inverse_column(inverse_rms, x);
  const at::Tensor normal = x.to(at::kFloat).mul(inverse);
  const at::Tensor incoming = grad.to(at::kFloat);
  at::Tensor scale = weight_D.to(at::kFloat);
  if (order == NormOrder::ScaleByOnePlusThenCast) scale = scale.add(1);
  const at::Tensor grad_normal = incoming * scale;
  const at::Tensor along = grad_normal.mul(normal).mean({-1}, true);
  NormGradients gradients;
  gradients.x = grad_normal.sub(normal * along).mul_(inverse).to(x.scalar_type());
  if (grad_x.defined()) gradients.x.add_(grad_x);
  if (wants_weight)
    gradients.weight_D =
        incoming.mul(normal).view({-1, weight_D.numel()}).sum({0}).to(weight_D.scalar_type());
  return gradients;
}

}  // namespace

const RmsNormOps kRmsNormAten = {run_forward, run_add_forward, run_backward};

}  // namespace convoy::kernels
