// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/rope/rope.h"

#include "convoy/kernels/rope/rope_reference.h"

namespace convoy::kernels {

at::Tensor rope(const at::Tensor& x_THE, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                const at::Tensor& positions_T) {
  return reference::rope(x_THE.to(at::kFloat), cos_PE, sin_PE, positions_T).to(x_THE.scalar_type());
}

}  // namespace convoy::kernels
