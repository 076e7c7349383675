// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/cuda/block_shape.h"
#include "convoy/model/kernels/cuda/launch.h"
#include "convoy/model/kernels/rms_norm/rms_norm_launch.h"
#include "convoy/model/kernels/rms_norm/rms_norm_ops.h"

namespace convoy::kernels {
namespace {

gpu::RmsNormLaunch launch_of(const at::Tensor& x, const at::Tensor& weight_D, NormOrder order) {
  const int64_t width = x.size(-1);
  return {.x = x.const_data_ptr(),
          .weight = weight_D.const_data_ptr(),
          .rows = static_cast<uint64_t>(width == 0 ? 0 : x.numel() / width),
          .width = static_cast<uint64_t>(width),
          .scale_by_one_plus = order == NormOrder::ScaleByOnePlusThenCast};
}

// Takes the norm of x, or of x + added, which is stored in `sum`.
at::Tensor norm_of(const at::Tensor& x, const at::Tensor& added, const at::Tensor& sum,
                   const at::Tensor& weight_D, const at::Tensor& inverse_rms, double epsilon,
                   NormOrder order) {
  at::Tensor y = at::empty(x.sizes(), x.options());
  gpu::RmsNormLaunch launched = launch_of(x, weight_D, order);
  if (launched.rows == 0) return y;
  launched.inverse_rms = inverse_rms.defined() ? inverse_rms.mutable_data_ptr<float>() : nullptr;
  launched.result = y.mutable_data_ptr();
  launched.epsilon = static_cast<float>(epsilon);
  launched.vectors = fits_vectors({x, weight_D, y}, x.size(-1));
  if (added.defined()) {
    launched.added = added.const_data_ptr();
    launched.sum = sum.mutable_data_ptr();
    launched.vectors = launched.vectors && fits_vectors({added, sum}, x.size(-1));
  }
  launch(x, kernel_name("rms_norm", x.scalar_type()),
         gpu::blocks_for_rows(launched.rows, launched.width), launched);
  return y;
}

at::Tensor run_forward(const at::Tensor& x, const at::Tensor& weight_D,
                       const at::Tensor& inverse_rms, double epsilon, NormOrder order) {
  return norm_of(x, {}, {}, weight_D, inverse_rms, epsilon, order);
}

AddedNorm run_add_forward(const at::Tensor& x, const at::Tensor& added, const at::Tensor& weight_D,
                          const at::Tensor& inverse_rms, double epsilon, NormOrder order) {
  const at::Tensor sum = at::empty(x.sizes(), x.options());
  return {sum, norm_of(x, added, sum, weight_D, inverse_rms, epsilon, order)};
}

// Sums parts of the rows, then the parts, in an order that is the same on every GPU.
at::Tensor weight_gradient(const at::Tensor& x, const at::Tensor& weight_D,
                           gpu::RmsNormLaunch launched) {
  const uint64_t parts = (launched.rows + gpu::kNormRowsPerPart - 1) / gpu::kNormRowsPerPart;
  const at::Tensor sums_PD =
      at::empty({static_cast<int64_t>(parts), weight_D.numel()}, x.options().dtype(at::kFloat));
  launched.sums = sums_PD.mutable_data_ptr<float>();
  const uint64_t columns = gpu::kWarpThreads * (launched.vectors ? elements_per_vector(x) : 1);
  launch(x, kernel_name("rms_norm_weight_gradient", x.scalar_type()),
         parts * ((launched.width + columns - 1) / columns), launched);
  return sums_PD.sum(0).to(weight_D.scalar_type());
}

NormGradients run_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight_D,
                           const at::Tensor& inverse_rms, const at::Tensor& grad_x, NormOrder order,
                           bool wants_weight) {
  NormGradients gradients{.x = at::empty(x.sizes(), x.options()), .weight_D = {}};
  gpu::RmsNormLaunch launched = launch_of(x, weight_D, order);
  if (launched.rows == 0) {
    if (wants_weight) gradients.weight_D = at::zeros_like(weight_D);
    return gradients;
  }
  launched.grad = grad.const_data_ptr();
  launched.inverse_rms = inverse_rms.mutable_data_ptr<float>();
  launched.result = gradients.x.mutable_data_ptr();
  launched.vectors = fits_vectors({grad, x, weight_D, gradients.x}, x.size(-1));
  if (grad_x.defined()) {
    launched.added = grad_x.const_data_ptr();
    launched.vectors = launched.vectors && fits_vectors({grad_x}, x.size(-1));
  }
  launch(x, kernel_name("rms_norm_backward", x.scalar_type()),
         gpu::blocks_for_rows(launched.rows, launched.width), launched);
  launched.added = nullptr;
  if (wants_weight) gradients.weight_D = weight_gradient(x, weight_D, launched);
  return gradients;
}

}  // namespace

const RmsNormOps kRmsNormCuda = {run_forward, run_add_forward, run_backward};

}  // namespace convoy::kernels
