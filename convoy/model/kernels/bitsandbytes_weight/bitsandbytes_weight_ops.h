// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for bitsandbytes_weight.
#pragma once

#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"

namespace convoy::kernels {

struct BitsandbytesWeightOps {
  // `dtype`: fp32 or bf16.
  at::Tensor (*decode)(const BitsandbytesWeight& weight, at::ScalarType dtype);
};

const BitsandbytesWeightOps& bitsandbytes_weight_ops(
    at::Device device);  // chosen by registry/op_table.cpp

extern const BitsandbytesWeightOps kBitsandbytesWeightCpu;
extern const BitsandbytesWeightOps kBitsandbytesWeightAten;  // any device
extern const BitsandbytesWeightOps kBitsandbytesWeightCuda;

}  // namespace convoy::kernels
