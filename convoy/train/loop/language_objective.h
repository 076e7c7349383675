// SPDX-License-Identifier: Apache-2.0
//
// Causal language modelling: the next token of supervised tokens, each with its weight over the
// global batch.
#pragma once

#include <optional>

#include "convoy/data/datasets/batches/batch_plan.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/train/loop/evaluation.h"
#include "convoy/train/loop/step_batches.h"
#include "convoy/train/loop/training_objective.h"

namespace convoy::train {

class LanguageObjective : public TrainingObjective {
 public:
  // All arguments outlive it. `validation` may be empty; each part of a joined data set has its own
  // loss, too. `eval_batch_size`: rows.
  LanguageObjective(nn::CausalLm& model, const data::BatchPlan& plan,
                    const data::TokenDataset& validation, int64_t eval_batch_size);

  // The totals of steps from begin() on include the operations that `flops` counts.
  void count_flops(StepFlops flops) { flops_ = std::move(flops); }

  int64_t steps_per_epoch() const override { return plan_.steps_per_epoch(); }
  int64_t micro_batches_per_step() const override { return plan_.config().grad_accum; }
  void begin(StepRange steps, int rank) override;
  MicroBatchPosition take() override;
  MicroBatchLoss loss(const PassOptions& options) override;
  bool has_validation() const override { return validation_.num_rows() > 0; }
  std::optional<Evaluation> evaluate(comm::Group& group,
                                     const std::function<bool()>& stop_requested) override;
  nn::Residency* residency() const override { return model_.residency(); }
  at::Device device() const override { return model_.device(); }

 private:
  Evaluation evaluation_of(const EvaluationFigures& figures) const;

  nn::CausalLm& model_;
  const data::BatchPlan& plan_;
  const data::TokenDataset& validation_;
  int64_t eval_batch_size_;
  StepFlops flops_;
  std::optional<StepBatches> batches_;
  std::optional<LabelledBatch> batch_;  // the batch taken last
};

}  // namespace convoy::train
