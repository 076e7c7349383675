// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include "convoy/model/kernels/conv_stage/norm_pool_ops.h"

namespace convoy::kernels {
namespace {

at::Tensor statistics(const at::Tensor& z_NLO) {
  const auto [variance_O, mean_O] = at::var_mean(z_NLO, at::IntArrayRef({0, 1}), 0);
  return at::stack({mean_O, variance_O});
}

at::Tensor every_second(const at::Tensor& z_NLO, int64_t first) {
  return z_NLO.slice(1, first, z_NLO.size(1) / 2 * 2, 2);
}

at::Tensor activate(const at::Tensor& z_NLO, const NormTensors& norm, Pool pool) {
  const at::Tensor active_NLO = (z_NLO * norm.scale_O + norm.offset_O).relu();
  if (pool == Pool::Mean) return active_NLO.mean(1);
  return at::maximum(every_second(active_NLO, 0), every_second(active_NLO, 1));
}

// The gradient of the activations before the ReLU.
at::Tensor activation_gradient(const at::Tensor& grad, const at::Tensor& active_NLO, Pool pool) {
  if (pool == Pool::Mean)
    return at::where(active_NLO > 0, grad.unsqueeze(1) / active_NLO.size(1), 0.0f);
  const at::Tensor first = every_second(active_NLO, 0);
  const at::Tensor second = every_second(active_NLO, 1);
  const at::Tensor alive = at::where(at::maximum(first, second) > 0, grad, 0.0f);
  at::Tensor found = at::zeros(active_NLO.sizes(), active_NLO.options());
  every_second(found, 0).copy_(at::where(second > first, 0.0f, alive));
  every_second(found, 1).copy_(at::where(second > first, alive, 0.0f));
  return found;
}

NormPoolGradients gradients(const at::Tensor& grad, const at::Tensor& z_NLO,
                            const NormTensors& norm, Pool pool, const at::Tensor& grad_z_NLO) {
  const at::Tensor grad_NLO = activation_gradient(grad, z_NLO * norm.scale_O + norm.offset_O, pool);
  const at::Tensor normal_NLO = (z_NLO - norm.mean_O) * norm.inverse_deviation_O;
  const NormPoolGradients found{(grad_NLO * normal_NLO).sum(at::IntArrayRef({0, 1})),
                                grad_NLO.sum(at::IntArrayRef({0, 1}))};
  const auto rows = static_cast<double>(z_NLO.size(0) * z_NLO.size(1));
  grad_z_NLO.copy_(norm.scale_O *
                   (grad_NLO - found.shift_O / rows - normal_NLO * (found.gain_O / rows)));
  return found;
}

}  // namespace

const NormPoolOps kNormPoolAten = {statistics, activate, gradients};

}  // namespace convoy::kernels
