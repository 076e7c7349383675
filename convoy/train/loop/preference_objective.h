// SPDX-License-Identifier: Apache-2.0
//
// Learning from pairs of completions: a loss of objectives/pair_loss.h over the log-probabilities
// of the model. Rows 2i and 2i + 1 of a data set are the chosen and the rejected completion of pair
// i. Its figures count pairs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "convoy/train/loop/evaluation.h"
#include "convoy/train/loop/text_objective.h"
#include "convoy/train/objectives/pair_loss.h"

namespace convoy::train {

// The reference's log-probability of each row, by row of the data set; empty: there is none.
struct ReferenceScores {
  std::vector<double> train;
  std::vector<double> validation;
  // Only for a task that estimates the divergence: the reference's log-probability of the
  // mismatched answer behind each row's prompt (mismatched_rows.h), by row. Each epoch has its own
  // mismatches. Collective; called as the epoch begins.
  std::function<std::vector<double>(int64_t epoch)> mismatched_of_epoch = {};
  std::vector<double> mismatched_validation = {};
};

class PreferenceObjective : public TextObjective {
 public:
  // `model`, `plan` and `validation`, which may be empty, outlive it. `eval_batch_size`: pairs.
  // `reference` has every row that the steps of begin() read.
  PreferenceObjective(nn::CausalLm& model, const data::BatchPlan& plan,
                      const data::TokenDataset& validation, int64_t eval_batch_size,
                      objectives::PairObjective loss, ReferenceScores reference);

  MicroBatchPosition take() override;
  MicroBatchLoss loss(const PassOptions& options) override;
  int64_t num_figures() const override;
  std::map<std::string, double> step_figures(const std::vector<double>& sums) const override;
  std::optional<Evaluation> evaluate(comm::Group& group,
                                     const std::function<bool()>& stop_requested) override;

 private:
  // Scores of rows of one data set: chosen for the even rows, rejected for the odd rows.
  struct Sides {
    objectives::CompletionScores chosen;
    objectives::CompletionScores rejected;
  };
  Sides sides_of(const data::TokenDataset& dataset, const std::vector<int64_t>& rows,
                 const at::Tensor& log_probability_R, const std::vector<double>& reference) const;

  int64_t eval_batch_size_;
  objectives::PairObjective loss_;
  ReferenceScores reference_;
  std::optional<MicroBatch> batch_;  // the micro-batch taken last
};

}  // namespace convoy::train
