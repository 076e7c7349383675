// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/cuda/launch.h"
#include "convoy/model/kernels/rope/rope_launch.h"
#include "convoy/model/kernels/rope/rope_ops.h"

namespace convoy::kernels {
namespace {

at::Tensor rotate(const at::Tensor& x_THE, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                  const at::Tensor& positions_T, float direction) {
  at::Tensor y_THE = at::empty(x_THE.sizes(), x_THE.options());
  if (x_THE.numel() == 0) return y_THE;
  const int64_t half = x_THE.size(2) / 2;
  const bool vectors = fits_vectors({x_THE, y_THE, cos_PE, sin_PE}, half) &&
                       fits_vectors({x_THE}, x_THE.stride(0)) &&
                       fits_vectors({x_THE}, x_THE.stride(1));
  const gpu::RopeLaunch launched = {.x = x_THE.const_data_ptr(),
                                    .y = y_THE.mutable_data_ptr(),
                                    .cos = cos_PE.const_data_ptr<float>(),
                                    .sin = sin_PE.const_data_ptr<float>(),
                                    .positions = positions_T.const_data_ptr<int64_t>(),
                                    .tokens = static_cast<uint64_t>(x_THE.size(0)),
                                    .heads = static_cast<uint64_t>(x_THE.size(1)),
                                    .half = static_cast<uint64_t>(half),
                                    .token_stride = x_THE.stride(0),
                                    .head_stride = x_THE.stride(1),
                                    .direction = direction,
                                    .vectors = vectors};
  const int64_t together = vectors ? elements_per_vector(x_THE) : 1;
  launch(x_THE, kernel_name("rope", x_THE.scalar_type()),
         blocks_for_elements(x_THE.numel() / 2, together), launched);
  return y_THE;
}

}  // namespace

const RopeOps kRopeCuda = {rotate};

}  // namespace convoy::kernels
