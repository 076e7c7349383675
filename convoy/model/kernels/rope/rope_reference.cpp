// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/rope/rope_reference.h"

namespace convoy::kernels::reference {

at::Tensor rope(const at::Tensor& x_THE, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                const at::Tensor& positions_T) {
  at::Tensor cos_T1E = cos_PE.to(x_THE.scalar_type()).index_select(0, positions_T).unsqueeze(1);
  at::Tensor sin_T1E = sin_PE.to(x_THE.scalar_type()).index_select(0, positions_T).unsqueeze(1);
  std::vector<at::Tensor> halves = x_THE.chunk(2, -1);
  return at::cat(
      {halves[0] * cos_T1E - halves[1] * sin_T1E, halves[1] * cos_T1E + halves[0] * sin_T1E}, -1);
}

}  // namespace convoy::kernels::reference
