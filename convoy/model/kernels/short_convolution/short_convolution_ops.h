// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for the short convolution. The channels of x are
// contiguous, its rows may have a stride; all other tensors are contiguous. All lie on one device.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "convoy/model/kernels/short_convolution/short_convolution.h"

namespace convoy::kernels {

struct ShortConvolutionGradients {
  at::Tensor x_TC;
  at::Tensor weight_CW;
};

struct ShortConvolutionOps {
  at::Tensor (*forward)(const at::Tensor& x_TC, const at::Tensor& weight_CW, const RowIndex& rows);
  ShortConvolutionGradients (*backward)(const at::Tensor& grad_TC, const at::Tensor& x_TC,
                                        const at::Tensor& weight_CW, const RowIndex& rows);
  // `slots` has one place in `tails` for each row.
  at::Tensor (*advance)(const at::Tensor& x_TC, const at::Tensor& weight_CW, const RowIndex& rows,
                        const at::Tensor& tails_SVC, const std::vector<int64_t>& slots);
};

const ShortConvolutionOps& short_convolution_ops(at::Device device);  // chosen by op_table.cpp

extern const ShortConvolutionOps kShortConvolutionCpu;
extern const ShortConvolutionOps kShortConvolutionAten;  // any device

}  // namespace convoy::kernels
