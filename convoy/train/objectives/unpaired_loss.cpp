// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/objectives/unpaired_loss.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace convoy::objectives {

double divergence_estimate(double sum_of_log_ratios, int64_t rows) {
  return rows > 0 ? std::max(0.0, sum_of_log_ratios / static_cast<double>(rows)) : 0;
}

// The paper's value of a good answer is sigmoid(beta (r - z)), of a bad one sigmoid(beta (z - r)).
JudgedLosses judged_losses(const settings::PreferenceSettings& settings, const JudgedScores& scores,
                           double divergence) {
  const at::Tensor ratio_R = scores.log_probability_R - scores.reference_R;
  const at::Tensor good_R = scores.is_good_R.to(at::kDouble);
  const at::Tensor sign_R = good_R * 2 - 1;
  const at::Tensor weight_R =
      good_R * settings.desirable_weight + (1 - good_R) * settings.undesirable_weight;
  const at::Tensor value_R = at::sigmoid(settings.beta * sign_R * (ratio_R - divergence));
  return {.loss_R = weight_R * (1 - value_R), .reward_R = settings.beta * ratio_R.detach()};
}

}  // namespace convoy::objectives
