// SPDX-License-Identifier: Apache-2.0
//
// The factors of one step of AdamW, rounded once from its settings: the same on every device.
#pragma once

namespace convoy::kernels {

struct AdamWStep;

struct AdamWFactors {
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float keep;                  // 1 - lr * weight_decay
  float step_size;             // lr / (1 - beta1^t)
  float root_bias_correction;  // sqrt(1 - beta2^t)
  float epsilon;
  float gradient_scale;
};

AdamWFactors factors_of(const AdamWStep& step);

}  // namespace convoy::kernels
