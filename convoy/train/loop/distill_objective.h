// SPDX-License-Identifier: Apache-2.0
//
// Learning a teacher's distributions over the model's own texts: the divergence of
// objectives/distill_loss.h at every token of the texts, a mean over the tokens of the step. A
// teacher in memory reads the texts of each micro-batch beside the model; what a teacher elsewhere
// says comes with the texts (Rollout::teacher). Nothing of the size of tokens times vocabulary is
// ever whole.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/settings/distill_settings.h"
#include "convoy/train/loop/rollout_objective.h"
#include "convoy/train/objectives/distill_loss.h"

namespace convoy::train {

struct DistillOptions {
  settings::DistillSettings distill;
  int64_t eval_texts = 1;  // texts of a pass of an evaluation
};

class DistillObjective : public RolloutObjective {
 public:
  // All but the settings outlive it. `plan` deals problems. `teacher` is frozen, on the model's
  // device, whole on every rank. The tokens that both vocabularies have are compared. Null: the
  // texts of `source` come with distill.top_k tokens of a teacher.
  DistillObjective(nn::CausalLm& model, nn::CausalLm* teacher, const data::BatchPlan& plan,
                   RolloutSource& source, DistillOptions options, settings::RolloutSettings rollout,
                   comm::Group& group);

  MicroBatchLoss loss(const PassOptions& options) override;
  int64_t num_figures() const override;
  std::map<std::string, double> step_figures(const std::vector<double>& sums) const override;
  std::optional<Evaluation> evaluate(comm::Group& group,
                                     const std::function<bool()>& stop_requested) override;

 protected:
  Learnt choose(const std::vector<RolloutSummary>& all, std::vector<Rollout>& own,
                const std::vector<int64_t>& slots) override;
  bool is_learnt(const Rollout& /*rollout*/) const override { return true; }

 private:
  // The teacher at the N tokens that have a label: hidden states of a teacher in memory, else its
  // likeliest tokens.
  struct Teaching {
    at::Tensor hidden_NE = {};
    objectives::TopTokens top_N = {};
  };
  // `texts`: the batch's own, in the order of its rows.
  Teaching teaching_of(const LabelledBatch& batch, const std::vector<Rollout>& texts) const;
  objectives::TopTokens top_tokens_of(const std::vector<Rollout>& texts) const;
  // Divergences at the tokens [first, first + C) of those with a label.
  objectives::Divergences chunk_of(const Teaching& teaching, int64_t first,
                                   const at::Tensor& logits_CV, bool wants_gradient) const;
  // The sum of the divergences, and of each labelled token divergence and entropy, fp32 [N].
  struct TokenDivergences {
    at::Tensor sum;
    at::Tensor divergence_N;
    at::Tensor entropy_N;
  };
  TokenDivergences divergences_of(const LabelledBatch& batch, const Teaching& teaching,
                                  const at::Tensor& hidden_TD) const;
  std::vector<double> losses_of(const std::vector<Rollout>& texts, comm::Group& group) const;

  nn::CausalLm* const teacher_;
  const DistillOptions options_;
};

}  // namespace convoy::train
