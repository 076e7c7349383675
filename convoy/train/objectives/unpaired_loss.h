// SPDX-License-Identifier: Apache-2.0
//
// The losses of single completions that are called good or bad, from their log-probabilities: KTO's
// loss (arXiv 2402.01306). With a divergence of 0 it is the loss of APO-zero for single completions
// (arXiv 2408.06266). Shapes: R rows. All fp64, on any device; no call waits for the device.
#pragma once

#include <ATen/core/Tensor.h>

#include "convoy/core/settings/preference_settings.h"

namespace convoy::objectives {

struct JudgedScores {
  at::Tensor log_probability_R;  // the completion after its prompt, a sum over its tokens
  at::Tensor reference_R;        // the same for the reference
  at::Tensor is_good_R;          // bool
};

struct JudgedLosses {
  at::Tensor loss_R;    // differentiable in the log-probabilities
  at::Tensor reward_R;  // beta times the logarithm of the ratio to the reference
};

// How far the model is from its reference, the point from which gains and losses count: the mean
// logarithm of the ratio over completions behind prompts that they do not answer, and at least 0.
double divergence_estimate(double sum_of_log_ratios, int64_t rows);

// `divergence`: a number; no gradient passes through it.
JudgedLosses judged_losses(const settings::PreferenceSettings& settings, const JudgedScores& scores,
                           double divergence);

}  // namespace convoy::objectives
