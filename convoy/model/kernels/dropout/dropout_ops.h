// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for dropout.
#pragma once

#include <ATen/core/Tensor.h>

#include "convoy/model/kernels/dropout/drop_rule.h"

namespace convoy::kernels {

struct DropoutOps {
  at::Tensor (*drop)(const at::Tensor& x, const DropRule& rule);
};

const DropoutOps& dropout_ops(at::Device device);  // chosen by registry/op_table.cpp

extern const DropoutOps kDropoutCpu;
extern const DropoutOps kDropoutAten;  // any device
extern const DropoutOps kDropoutCuda;

}  // namespace convoy::kernels
