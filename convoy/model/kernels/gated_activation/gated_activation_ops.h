// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for gated_activation. Inputs are contiguous; inputs of
// forward() need to be contiguous only within each row of two dimensions.
#pragma once

#include <ATen/core/Tensor.h>

#include "convoy/model/kernels/gated_activation/gated_activation.h"

namespace convoy::kernels {

struct GatedActivationGradients {
  at::Tensor gate_TF;
  at::Tensor up_TF;
};

struct GatedActivationOps {
  at::Tensor (*forward)(const at::Tensor& gate_TF, const at::Tensor& up_TF, Activation activation);
  GatedActivationGradients (*backward)(const at::Tensor& grad_TF, const at::Tensor& gate_TF,
                                       const at::Tensor& up_TF, Activation activation);
};

const GatedActivationOps& gated_activation_ops(
    at::Device device);  // chosen by registry/op_table.cpp

extern const GatedActivationOps kGatedActivationCpu;
extern const GatedActivationOps kGatedActivationAten;  // any device
extern const GatedActivationOps kGatedActivationCuda;

}  // namespace convoy::kernels
