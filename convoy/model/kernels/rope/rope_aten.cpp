// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/rope/rope_ops.h"

namespace convoy::kernels {
namespace {

at::Tensor rotate(const at::Tensor& x_THE, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                  const at::Tensor& positions_T, float direction) {
  const int64_t half = x_THE.size(2) / 2;
  const at::Tensor cos = cos_PE.index_select(0, positions_T).unsqueeze(1);
  const at::Tensor sin = sin_PE.index_select(0, positions_T).unsqueeze(1) * direction;
  const at::Tensor first = x_THE.narrow(2, 0, half).to(at::kFloat);
  const at::Tensor second = x_THE.narrow(2, half, half).to(at::kFloat);
  at::Tensor y_THE = at::empty(x_THE.sizes(), x_THE.options());
  y_THE.narrow(2, 0, half).copy_(first * cos - second * sin);
  y_THE.narrow(2, half, half).copy_(second * cos + first * sin);
  return y_THE;
}

}  // namespace

const RopeOps kRopeAten = {rotate, rotate_one_by_one<rotate>};

}  // namespace convoy::kernels
