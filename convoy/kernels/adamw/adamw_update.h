// SPDX-License-Identifier: Apache-2.0
//
// One step of AdamW (arXiv 1711.05101) over many parameters, with the arithmetic of
// torch.optim.AdamW.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace convoy::kernels {

// One parameter: contiguous tensors of one shape on one device.
struct AdamWTensors {
  at::Tensor value;       // fp32: the parameter or its master
  at::Tensor gradient;    // fp32; left as it is
  at::Tensor exp_avg;     // fp32
  at::Tensor exp_avg_sq;  // fp32
  at::Tensor rounded;     // receives the new values in the model's type; may be undefined
};

struct AdamWStep {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double gradient_scale = 1;  // every gradient is multiplied by it: the clip coefficient
  int64_t step = 1;           // 1 for the first
};

// In place; the versions of `value` and `rounded` go up. Nothing waits for the device.
void adamw_update(const std::vector<AdamWTensors>& parameters, const AdamWStep& step);

}  // namespace convoy::kernels
