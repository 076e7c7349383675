// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for conv_stage: batch norm, ReLU and pooling of the output
// of a convolution. Everything is fp32. Shapes: N windows, L rows, O channels; rows of [N, L, O]
// are contiguous, windows lie any distance apart.
#pragma once

#include <ATen/core/Tensor.h>

namespace convoy::kernels {

enum class Pool {
  Pairs,  // the larger of every two rows; an odd last row is left out
  Mean,   // the mean of all rows
};

// By channel. The activation is z * scale + offset.
struct NormTensors {
  at::Tensor mean_O;
  at::Tensor inverse_deviation_O;
  at::Tensor scale_O;
  at::Tensor offset_O;
};

struct NormPoolGradients {
  at::Tensor gain_O;
  at::Tensor shift_O;
};

struct NormPoolOps {
  // Mean and biased variance over windows and rows, [2, O].
  at::Tensor (*statistics)(const at::Tensor& z_NLO);
  // [N, L / 2, O] or [N, O].
  at::Tensor (*activate)(const at::Tensor& z_NLO, const NormTensors& norm, Pool pool);
  // `norm` was made of z's own statistics. Writes the gradient of z into `grad_z_NLO`.
  NormPoolGradients (*gradients)(const at::Tensor& grad, const at::Tensor& z_NLO,
                                 const NormTensors& norm, Pool pool, const at::Tensor& grad_z_NLO);
};

const NormPoolOps& norm_pool_ops(at::Device device);  // chosen by registry/op_table.cpp

extern const NormPoolOps kNormPoolCpu;
extern const NormPoolOps kNormPoolAten;  // any device

}  // namespace convoy::kernels
