// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for adamw_update.
#pragma once

#include "convoy/model/kernels/adamw/adamw_update.h"

namespace convoy::kernels {

struct AdamWOps {
  using Update = void (*)(const std::vector<AdamWTensors>& parameters, const AdamWStep& step);
  Update update;         // value and moments in fp32; not empty
  Update update_narrow;  // parameters with bf16 values or moments that are not fp32; not empty
};

void update_narrow_on_cpu(const std::vector<AdamWTensors>& parameters, const AdamWStep& step);
void update_narrow_by_aten(const std::vector<AdamWTensors>& parameters, const AdamWStep& step);
void update_narrow_on_cuda(const std::vector<AdamWTensors>& parameters, const AdamWStep& step);

const AdamWOps& adamw_ops(at::Device device);  // chosen by registry/op_table.cpp

extern const AdamWOps kAdamWCpu;
extern const AdamWOps kAdamWAten;  // any device
extern const AdamWOps kAdamWCuda;

}  // namespace convoy::kernels
