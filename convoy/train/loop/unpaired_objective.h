// SPDX-License-Identifier: Apache-2.0
//
// Learning from single answers that are called good or bad: the loss of objectives/unpaired_loss.h.
// For KTO all ranks together estimate how far the model is from its reference, before the first
// micro-batch of a step, over the step's prompts with each other's answers. So the loss does not
// depend on ranks and micro-batches.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "convoy/train/loop/preference_objective.h"
#include "convoy/train/loop/text_objective.h"
#include "convoy/train/objectives/unpaired_loss.h"

namespace convoy::train {

struct UnpairedOptions {
  settings::PreferenceSettings preference = {};
  bool estimates_divergence = true;  // false: gains count from the reference itself
  int64_t most_tokens = 0;           // the longest row
  int64_t eval_batch_size = 1;       // rows that are scored together
};

class UnpairedObjective : public TextObjective {
 public:
  // `model`, `plan`, `validation`, which may be empty, and `group` outlive it. `reference` has
  // every row that the steps of begin() read, and their mismatched ones where it estimates.
  UnpairedObjective(nn::CausalLm& model, const data::BatchPlan& plan,
                    const data::TokenDataset& validation, UnpairedOptions options,
                    ReferenceScores reference, comm::Group& group);

  // Collective for the first micro-batch of a step, if the objective estimates the divergence.
  MicroBatchPosition take() override;
  MicroBatchLoss loss(const PassOptions& options) override;
  int64_t num_figures() const override;
  std::map<std::string, double> step_figures(const std::vector<double>& sums) const override;
  std::optional<Evaluation> evaluate(comm::Group& group,
                                     const std::function<bool()>& stop_requested) override;

 private:
  const std::vector<double>& mismatched_of(int64_t epoch);
  std::optional<double> divergence(const data::TokenDataset& dataset,
                                   const std::vector<int64_t>& rows,
                                   const std::vector<double>& reference, comm::Group& group,
                                   const std::function<bool()>& stop_requested) const;
  objectives::JudgedScores scores_of(const data::TokenDataset& dataset,
                                     const std::vector<int64_t>& rows,
                                     const at::Tensor& log_probability_R,
                                     const std::vector<double>& reference) const;

  UnpairedOptions options_;
  ReferenceScores reference_;
  comm::Group& group_;
  std::optional<MicroBatch> batch_;  // the micro-batch taken last
  double divergence_ = 0;            // the KL estimate of its step; 0: there is none
  int64_t mismatched_epoch_ = -1;    // the epoch whose mismatched scores are here
  std::vector<double> mismatched_;
};

}  // namespace convoy::train
