// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/paged_attention/head_transform.h"

#include "convoy/model/kernels/rope/rope.h"

namespace convoy::kernels {

at::Tensor transformed_heads(const at::Tensor& x_THE, const at::Tensor& norm_E,
                             const HeadTransform& transform) {
  at::Tensor y_THE = x_THE;
  if (norm_E.defined())
    y_THE = rms_norm(x_THE.contiguous(), norm_E, transform.norm_epsilon, transform.norm_order);
  return transform.cos_PE.defined()
             ? rope(y_THE, transform.cos_PE, transform.sin_PE, transform.positions_T)
             : y_THE;
}

}  // namespace convoy::kernels
