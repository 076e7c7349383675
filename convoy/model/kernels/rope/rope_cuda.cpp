// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/cuda/launch.h"
#include "convoy/model/kernels/rope/rope_launch.h"
#include "convoy/model/kernels/rope/rope_ops.h"

namespace convoy::kernels {
namespace {

using Tensors = std::vector<at::Tensor>;

bool fits(const at::Tensor& x_THE, int64_t half) {
  return fits_vectors({x_THE}, half) && fits_vectors({x_THE}, x_THE.stride(0)) &&
         fits_vectors({x_THE}, x_THE.stride(1));
}

// `all`: one tensor or two.
Tensors rotate_all(const Tensors& all, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                   const at::Tensor& positions_T, float direction) {
  const at::Tensor& first = all.front();
  const int64_t half = first.size(2) / 2;
  gpu::RopeLaunch launched = {.cos = cos_PE.const_data_ptr<float>(),
                              .sin = sin_PE.const_data_ptr<float>(),
                              .positions = positions_T.const_data_ptr<int64_t>(),
                              .tokens = static_cast<uint64_t>(first.size(0)),
                              .half = static_cast<uint64_t>(half),
                              .direction = direction,
                              .vectors = fits_vectors({cos_PE, sin_PE}, half)};
  Tensors rotated;
  int64_t elements = 0;
  for (size_t part = 0; part < all.size(); ++part) {
    const at::Tensor& x_THE = all[part];
    rotated.push_back(at::empty(x_THE.sizes(), x_THE.options()));
    launched.parts[part] = {.x = x_THE.const_data_ptr(),
                            .y = rotated.back().mutable_data_ptr(),
                            .heads = static_cast<uint64_t>(x_THE.size(1)),
                            .token_stride = x_THE.stride(0),
                            .head_stride = x_THE.stride(1)};
    launched.vectors = launched.vectors && fits(x_THE, half) && fits(rotated.back(), half);
    elements += x_THE.numel();
  }
  if (elements == 0) return rotated;
  const int64_t together = launched.vectors ? elements_per_vector(first) : 1;
  launch(first, kernel_name("rope", first.scalar_type()),
         blocks_for_elements(elements / 2, together), launched);
  return rotated;
}

at::Tensor rotate(const at::Tensor& x_THE, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                  const at::Tensor& positions_T, float direction) {
  return rotate_all({x_THE}, cos_PE, sin_PE, positions_T, direction)[0];
}

RotatedHeads rotate_both(const RotatedHeads& heads, const at::Tensor& cos_PE,
                         const at::Tensor& sin_PE, const at::Tensor& positions_T, float direction) {
  const Tensors rotated =
      rotate_all({heads.q_THE, heads.k_TKE}, cos_PE, sin_PE, positions_T, direction);
  return {rotated[0], rotated[1]};
}

}  // namespace

const RopeOps kRopeCuda = {rotate, rotate_both};

}  // namespace convoy::kernels
