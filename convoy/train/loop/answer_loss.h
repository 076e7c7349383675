// SPDX-License-Identifier: Apache-2.0
//
// A loss over the log-probabilities of whole answers, with its gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "convoy/model/nn/causal_lm.h"
#include "convoy/train/loop/step_batches.h"
#include "convoy/train/loop/training_objective.h"

namespace convoy::train {

struct AnswersLoss {
  at::Tensor sum;      // over the rows; differentiable in their log-probabilities
  at::Tensor figures;  // MicroBatchLoss::figures
};

// `loss` gets the log-probability of each row's supervised tokens, fp64. It is not called where the
// micro-batch has no rows.
MicroBatchLoss loss_of_answers(
    nn::CausalLm& model, const MicroBatch& micro_batch, const PassOptions& options,
    const std::function<AnswersLoss(const at::Tensor& log_probability_R)>& loss);

}  // namespace convoy::train
