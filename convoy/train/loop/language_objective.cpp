// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/language_objective.h"

#include "convoy/model/nn/head_loss.h"

namespace convoy::train {

LanguageObjective::LanguageObjective(nn::CausalLm& model, const data::BatchPlan& plan,
                                     const data::TokenDataset& validation, int64_t eval_batch_size)
    : TextObjective(model, plan, validation), eval_batch_size_(eval_batch_size) {}

MicroBatchPosition LanguageObjective::take() {
  MicroBatch micro_batch = take_batch();
  batch_ = std::move(micro_batch.batch);
  return micro_batch.place;
}

MicroBatchLoss LanguageObjective::loss(const PassOptions& options) {
  const LabelledBatch batch = batch_->num_tokens() > 0 ? *batch_ : idle_batch(model_.device());
  const at::Tensor hidden_TD = model_.hidden_states(
      batch.tokens, {.recompute = options.recompute,
                     .kept_inputs = options.keeps_inputs_on_host ? nn::KeptInputs::OnHost
                                                                 : nn::KeptInputs::OnDevice,
                     .draw_key = options.draw_key,
                     .noise_alpha = options.noise_alpha});
  return {.sum = nn::head_loss(model_, hidden_TD, batch.labels), .hits = {}};
}

namespace {

void add(EvaluationFigures& sum, const EvaluationFigures& part) {
  sum.nll_sum += part.nll_sum;
  sum.weight += part.weight;
  sum.supervised_tokens += part.supervised_tokens;
  sum.correct_tokens += part.correct_tokens;
  sum.rows += part.rows;
  sum.seconds += part.seconds;
}

}  // namespace

std::optional<Evaluation> LanguageObjective::evaluate(comm::Group& group,
                                                      const std::function<bool()>& stop_requested) {
  const std::vector<data::NamedRows>& parts = validation_.parts();
  if (parts.empty()) {
    const auto figures =
        evaluate_loss(model_, validation_, eval_batch_size_, group, stop_requested);
    return figures ? std::optional(evaluation_of(*figures)) : std::nullopt;
  }
  EvaluationFigures sum;
  std::vector<std::pair<std::string, double>> losses;
  for (const data::NamedRows& part : parts) {
    const auto figures = evaluate_loss(model_, part.rows, eval_batch_size_, group, stop_requested);
    if (!figures) return std::nullopt;
    add(sum, *figures);
    losses.emplace_back("loss_" + part.name, figures->loss());
  }
  Evaluation evaluation = evaluation_of(sum);
  for (const auto& [name, loss] : losses) evaluation.others[name] = loss;
  return evaluation;
}

Evaluation LanguageObjective::evaluation_of(const EvaluationFigures& figures) const {
  return Evaluation{.loss = figures.loss(),
                    .rows = figures.rows,
                    .batches = (figures.rows + eval_batch_size_ - 1) / eval_batch_size_,
                    .supervised_tokens = figures.supervised_tokens,
                    .seconds = figures.seconds,
                    .others = {{"perplexity", figures.perplexity()},
                               {"mean_token_accuracy", figures.token_accuracy()}}};
}

}  // namespace convoy::train
