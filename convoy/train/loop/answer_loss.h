// SPDX-License-Identifier: Apache-2.0
//
// Losses over the log-probabilities of tokens or of whole answers, with their gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "convoy/model/nn/causal_lm.h"
#include "convoy/train/loop/step_batches.h"
#include "convoy/train/loop/training_objective.h"

namespace convoy::train {

struct AnswersLoss {
  at::Tensor sum;      // over the rows; differentiable in the log-probabilities
  at::Tensor figures;  // MicroBatchLoss::figures
};

// `loss` gets the log-probability of each row's supervised tokens, fp64. It is not called where the
// micro-batch has no rows.
MicroBatchLoss loss_of_answers(
    nn::CausalLm& model, const MicroBatch& micro_batch, const PassOptions& options,
    const std::function<AnswersLoss(const at::Tensor& log_probability_R)>& loss);

// `loss` gets the log-probability of each supervised token, fp64, in the order of the batch.
// Otherwise as loss_of_answers().
MicroBatchLoss loss_of_tokens(
    nn::CausalLm& model, const MicroBatch& micro_batch, const PassOptions& options,
    const std::function<AnswersLoss(const at::Tensor& log_probability_N)>& loss);

}  // namespace convoy::train
