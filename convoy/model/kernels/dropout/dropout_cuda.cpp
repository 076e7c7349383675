// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/cuda/launch.h"
#include "convoy/model/kernels/dropout/dropout_launch.h"
#include "convoy/model/kernels/dropout/dropout_ops.h"

namespace convoy::kernels {
namespace {

at::Tensor drop(const at::Tensor& x, const DropRule& rule) {
  at::Tensor y = at::empty(x.sizes(), x.options());
  if (x.numel() == 0) return y;
  const gpu::DropoutLaunch launched = {.x = x.const_data_ptr(),
                                       .y = y.mutable_data_ptr(),
                                       .count = static_cast<uint64_t>(x.numel()),
                                       .num_vectors = vectors_of({x, y}),
                                       .rule = rule};
  launch(x, kernel_name("dropout", x.scalar_type()),
         blocks_for_elements(x.numel(), elements_per_vector(x)), launched);
  return y;
}

}  // namespace

const DropoutOps kDropoutCuda = {drop};

}  // namespace convoy::kernels
