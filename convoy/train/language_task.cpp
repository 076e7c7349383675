// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/language_task.h"

#include "convoy/nn/head_loss.h"
#include "convoy/train/evaluation.h"

namespace convoy::train {

LanguageTask::LanguageTask(nn::CausalLm& model, const data::BatchPlan& plan,
                           const data::TokenDataset& validation, int64_t eval_batch_size)
    : model_(model), plan_(plan), validation_(validation), eval_batch_size_(eval_batch_size) {}

void LanguageTask::begin(StepRange steps, int rank) {
  batches_.emplace(plan_, rank, model_.device(), steps);
}

MicroBatchPlace LanguageTask::take() {
  MicroBatch micro_batch = batches_->take();
  batch_ = std::move(micro_batch.batch);
  micro_batch.place.has_rows = batch_->num_tokens() > 0;
  return micro_batch.place;
}

MicroBatchLoss LanguageTask::loss(const PassOptions& options) {
  const LabelledBatch batch = batch_->num_tokens() > 0 ? *batch_ : idle_batch(model_.device());
  const at::Tensor hidden_TD = model_.hidden_states(
      batch.tokens, {.recompute_blocks = options.recompute_blocks, .draw_key = options.draw_key});
  return {.sum = nn::head_loss(model_, hidden_TD, batch.labels), .hits = {}};
}

std::optional<Evaluation> LanguageTask::evaluate(comm::Group& group,
                                                 const std::function<bool()>& stop_requested) {
  const std::optional<EvaluationFigures> figures =
      evaluate_loss(model_, validation_, eval_batch_size_, group, stop_requested);
  if (!figures) return std::nullopt;
  return Evaluation{.loss = figures->loss(),
                    .rows = figures->rows,
                    .batches = (figures->rows + eval_batch_size_ - 1) / eval_batch_size_,
                    .supervised_tokens = figures->supervised_tokens,
                    .seconds = figures->seconds,
                    .others = {{"perplexity", figures->perplexity()},
                               {"mean_token_accuracy", figures->token_accuracy()}}};
}

}  // namespace convoy::train
