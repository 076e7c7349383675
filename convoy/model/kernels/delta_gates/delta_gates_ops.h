// SPDX-License-Identifier: Apache-2.0
//
// Each device implements this function for delta_gates. Inputs are contiguous.
#pragma once

#include <ATen/core/Tensor.h>

#include "convoy/model/kernels/delta_gates/delta_gates.h"

namespace convoy::kernels {

struct DeltaGatesOps {
  DeltaGates (*forward)(const at::Tensor& a_TH, const at::Tensor& b_TH, const at::Tensor& a_log_H,
                        const at::Tensor& dt_bias_H);
};

const DeltaGatesOps& delta_gates_ops(at::Device device);  // chosen by registry/op_table.cpp

extern const DeltaGatesOps kDeltaGatesCpu;
extern const DeltaGatesOps kDeltaGatesAten;  // any device

}  // namespace convoy::kernels
