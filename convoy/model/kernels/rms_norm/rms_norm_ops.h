// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for rms_norm. Inputs are contiguous and lie on one device.
#pragma once

#include <ATen/core/Tensor.h>

#include "convoy/model/kernels/rms_norm/rms_norm.h"

namespace convoy::kernels {

struct NormGradients {
  at::Tensor x;
  at::Tensor weight_D;  // undefined unless requested
};

struct RmsNormOps {
  // `inverse_rms`, fp32 [rows of x], is filled; undefined: not requested.
  at::Tensor (*forward)(const at::Tensor& x, const at::Tensor& weight_D,
                        const at::Tensor& inverse_rms, double epsilon, NormOrder order);
  AddedNorm (*add_forward)(const at::Tensor& x, const at::Tensor& added, const at::Tensor& weight_D,
                           const at::Tensor& inverse_rms, double epsilon, NormOrder order);
  // `grad_x`, where it is defined, is the rest of the gradient of x, which is added to the result.
  NormGradients (*backward)(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight_D,
                            const at::Tensor& inverse_rms, const at::Tensor& grad_x,
                            NormOrder order, bool wants_weight);
};

const RmsNormOps& rms_norm_ops(at::Device device);  // chosen by registry/op_table.cpp

extern const RmsNormOps kRmsNormCpu;
extern const RmsNormOps kRmsNormAten;  // any device
extern const RmsNormOps kRmsNormCuda;

}  // namespace convoy::kernels
