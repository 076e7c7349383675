// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/adamw/adamw_factors.h"

#include <cmath>

#include "convoy/model/kernels/adamw/adamw_update.h"

namespace convoy::kernels {

AdamWFactors factors_of(const AdamWStep& step) {
  const double correction1 = 1.0 - std::pow(step.beta1, static_cast<double>(step.step));
  const double correction2 = 1.0 - std::pow(step.beta2, static_cast<double>(step.step));
  return {.beta1 = static_cast<float>(step.beta1),
          .one_minus_beta1 = static_cast<float>(1.0 - step.beta1),
          .beta2 = static_cast<float>(step.beta2),
          .one_minus_beta2 = static_cast<float>(1.0 - step.beta2),
          .keep = static_cast<float>(1.0 - step.learning_rate * step.weight_decay),
          .step_size = static_cast<float>(step.learning_rate / correction1),
          .root_bias_correction = static_cast<float>(std::sqrt(correction2)),
          .epsilon = static_cast<float>(step.epsilon),
          .gradient_scale = static_cast<float>(step.gradient_scale)};
}

}  // namespace convoy::kernels
