// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for coded_weight.
#pragma once

#include "convoy/model/kernels/coded_weight/coded_weight.h"

namespace convoy::kernels {

struct CodedWeightOps {
  // `dtype`: fp32 or bf16.
  at::Tensor (*decode)(const CodedWeight& weight, at::ScalarType dtype);
};

extern const CodedWeightOps kCodedWeightCpu;
extern const CodedWeightOps kCodedWeightAten;  // any device
extern const CodedWeightOps kCodedWeightCuda;

}  // namespace convoy::kernels
