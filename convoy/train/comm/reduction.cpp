// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/reduction.h"

#include <ATen/ATen.h>

namespace convoy::comm {

void reduce_rows(at::Tensor out, const at::Tensor& rows, Reduction reduction) {
  const at::NoGradGuard no_grad;
  switch (reduction) {
    case Reduction::Sum:
      at::sum_out(out, rows, {0});
      return;
    case Reduction::Max:
      at::amax_out(out, rows, {0});
      return;
    case Reduction::Min:
      at::amin_out(out, rows, {0});
      return;
  }
}

}  // namespace convoy::comm
