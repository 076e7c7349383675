// SPDX-License-Identifier: Apache-2.0
//
// One step of AdamW (arXiv 1711.05101) over many parameters, with the arithmetic of
// torch.optim.AdamW. Moments are kept in fp32, in bf16, or in 8 bits as bitsandbytes keeps them
// (arXiv 2110.02861); whatever they are kept in, a step computes in fp32.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace convoy::kernels {

// Elements in a row that share the scale of their 8-bit moments.
inline constexpr int64_t kMomentBlock = 256;

// One parameter, or a piece of one: contiguous tensors of one shape on one device.
struct AdamWTensors {
  at::Tensor value;       // fp32: the parameter or its master; or bf16 without a master
  at::Tensor gradient;    // fp32 or bf16; left as it is
  at::Tensor exp_avg;     // fp32, bf16, or uint8: codes of the signed dynamic map
  at::Tensor exp_avg_sq;  // type as exp_avg; codes belong to the unsigned map
  // fp32 [elements / kMomentBlock, rounded up]: the factor of the values of each block of codes.
  // Undefined unless moments are codes.
  at::Tensor exp_avg_scale = {};
  at::Tensor exp_avg_sq_scale = {};
  at::Tensor rounded = {};  // receives the new values in the model's type; may be undefined
  // bf16 moments, and a bf16 value without a master, are rounded up or down at random, so that
  // rounding errors average out (arXiv 2010.06192). The random number of an element is a function
  // of `draw_key`, which differs for each parameter and step, and of the element's index in the
  // whole parameter. The piece begins at index `first_element`.
  uint64_t draw_key = 0;
  int64_t first_element = 0;
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

// Updates in place; the versions of `value` and `rounded` go up. Nothing waits for the device.
void adamw_update(const std::vector<AdamWTensors>& parameters, const AdamWStep& step);

}  // namespace convoy::kernels
