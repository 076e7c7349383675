// SPDX-License-Identifier: Apache-2.0
//
// Causal language modelling: the next token of supervised tokens, each with its weight over the
// global batch.
#pragma once

#include <optional>

#include "convoy/train/loop/evaluation.h"
#include "convoy/train/loop/text_objective.h"

namespace convoy::train {

class LanguageObjective : public TextObjective {
 public:
  // All arguments outlive it. `validation` may be empty; each part of a joined data set has its own
  // loss, too. `eval_batch_size`: rows.
  LanguageObjective(nn::CausalLm& model, const data::BatchPlan& plan,
                    const data::TokenDataset& validation, int64_t eval_batch_size);

  MicroBatchPosition take() override;
  MicroBatchLoss loss(const PassOptions& options) override;
  std::optional<Evaluation> evaluate(comm::Group& group,
                                     const std::function<bool()>& stop_requested) override;

 private:
  Evaluation evaluation_of(const EvaluationFigures& figures) const;

  int64_t eval_batch_size_;
  std::optional<LabelledBatch> batch_;  // the batch taken last
};

}  // namespace convoy::train
