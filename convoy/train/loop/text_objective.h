// SPDX-License-Identifier: Apache-2.0
//
// The part that all objectives of a language model share: the steps of a plan of token rows.
#pragma once

#include <optional>
#include <utility>

#include "convoy/data/datasets/batches/batch_plan.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/train/loop/step_batches.h"
#include "convoy/train/loop/training_objective.h"

namespace convoy::train {

class TextObjective : public TrainingObjective {
 public:
  // The totals of steps from begin() on include the operations that `flops` counts.
  void count_flops(StepFlops flops) { flops_ = std::move(flops); }

  int64_t steps_per_epoch() const override { return plan_.steps_per_epoch(); }
  int64_t micro_batches_per_step() const override { return plan_.config().grad_accum; }
  void begin(StepRange steps, int rank) override {
    batches_.emplace(plan_, rank, model_.device(), steps, flops_);
  }
  bool has_validation() const override { return validation_.num_rows() > 0; }
  nn::Residency* residency() const override { return model_.residency(); }
  at::Device device() const override { return model_.device(); }

 protected:
  // All arguments outlive it. `validation` may be empty.
  TextObjective(nn::CausalLm& model, const data::BatchPlan& plan,
                const data::TokenDataset& validation)
      : model_(model), plan_(plan), validation_(validation) {}

  // The next micro-batch of the steps from begin() on.
  MicroBatch take_batch() {
    MicroBatch taken = batches_->take();
    taken.place.has_rows = taken.batch.num_tokens() > 0;
    return taken;
  }

  nn::CausalLm& model_;
  const data::BatchPlan& plan_;
  const data::TokenDataset& validation_;

 private:
  StepFlops flops_;
  std::optional<StepBatches> batches_;
};

}  // namespace convoy::train
