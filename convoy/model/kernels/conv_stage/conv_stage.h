// SPDX-License-Identifier: Apache-2.0
//
// A stage of a convolutional encoder of signals: convolution, batch norm, ReLU, pooling. Signals
// lie row by row (a row: the channels at one time), so that the rows under a kernel are one run of
// memory and a convolution is a product of matrices without a copy. Shapes: N windows, L rows, C
// channels in, O channels out, K rows of the kernel.
#pragma once

#include <ATen/core/Tensor.h>

#include "convoy/model/kernels/conv_stage/norm_pool_ops.h"

namespace convoy::kernels {

// The tensors of torch.nn.Conv1d and BatchNorm1d; fp32.
struct ConvStageTensors {
  at::Tensor weight_OCK;  // K odd; the window is padded with rows of zeros
  at::Tensor bias_O;
  at::Tensor gain_O;
  at::Tensor shift_O;
  at::Tensor running_mean_O;
  at::Tensor running_variance_O;
};

struct ConvStageOptions {
  Pool pool = Pool::Pairs;
  // True: the norm uses the statistics of this batch, which also update the running statistics.
  // False: the norm uses the running statistics, and nothing is differentiable.
  bool training = false;
  bool bf16 = false;  // products of bf16 matrices, summed in fp32
  double epsilon = 1e-5;
  double momentum = 0.1;  // share of the batch in the running statistics
};

// x [N, L, C] fp32 -> [N, L / 2, O] (Pool::Pairs) or [N, O] (Pool::Mean), fp32. Differentiable in x
// and the first four tensors. The gradient of the bias is zero, because the norm that follows
// removes it. On the CPU equal inputs give equal bits for any number of threads. Throws StateError
// for shapes that do not fit, and for a batch of one row where `training`.
at::Tensor conv_stage(const at::Tensor& x_NLC, const ConvStageTensors& tensors,
                      const ConvStageOptions& options);

}  // namespace convoy::kernels
