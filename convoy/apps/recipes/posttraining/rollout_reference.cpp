// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/posttraining/rollout_reference.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "convoy/apps/recipes/posttraining/without_adapter.h"
#include "convoy/apps/recipes/training/reference_scores.h"
#include "convoy/core/base/error.h"
#include "convoy/model/nn/head_loss.h"
#include "convoy/train/comm/exchange.h"
#include "convoy/train/loop/labelled_batch.h"

namespace convoy::recipes {

RolloutReference::RolloutReference(const TrainingRun& run, const LoadedModel& base,
                                   comm::Group& group)
    : base_(base), group_(group), temperature_(run.settings.rollout.temperature) {
  const settings::TrainSettings& settings = run.settings;
  const std::string& wish = settings.policy.reference;
  if (!settings.keeps_reference()) {
    if (!settings.tuning.lora.adapter.empty() && !base.lora->config().modules_to_save.empty())
      throw ConfigError(
          "the adapter that training continues has whole modules (modules_to_save), so the base "
          "without it is not in memory",
          {.key = "policy.reference", .hint = "name the base's folder"});
    return;
  }
  // The model that the run starts from is read from its folder, not from a checkpoint, so a run
  // that goes on has the same reference; the checkpoint's stamp holds the folder's fingerprint.
  const bool is_start = wish == "base";
  if (!is_start)
    require_tokenizer_of(wish, base.tokenizer, settings.data.eos_token, settings.model.name,
                         "policy.reference");
  const std::string& name = is_start ? settings.model.name : wish;
  other_ = load_model({.name = name,
                       .revision = is_start ? settings.model.revision : "",
                       .dtype = run.dtype,
                       .eos_token = is_start ? settings.data.eos_token : "",
                       .device = run.rank_device.device},
                      run.log);
  int64_t bytes = 0;
  for (const nn::NamedTensor& parameter : other_->model->parameters())
    bytes += static_cast<int64_t>(parameter.value.nbytes());
  run.log.info(fmt::format("reference: {}, a second model of {} beside the one that trains", name,
                           telemetry::bytes_text(bytes)));
}

void RolloutReference::score_batch(nn::CausalLm& model,
                                   const std::vector<train::Rollout*>& rollouts) const {
  std::vector<data::EncodedRow> rows;
  for (const train::Rollout* const rollout : rollouts) rows.push_back(train::row_of(*rollout));
  std::vector<int64_t> all(rows.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  const train::LabelledBatch batch =
      rows.empty()
          ? train::idle_batch(model.device())
          : train::assemble_batch(data::TokenDataset::from_rows(rows), all, model.device());
  const at::Tensor hidden_TD = model.hidden_states(batch.tokens, {});
  const at::Tensor nll_N = nn::head_token_losses(model, hidden_TD, batch.labels, temperature_)
                               .nll_T.index_select(0, batch.labels.tokens_N())
                               .cpu();
  const float* next = nll_N.const_data_ptr<float>();
  for (train::Rollout* const rollout : rollouts) {
    rollout->reference.clear();
    for (int64_t token = 0; token < rollout->text_tokens(); ++token)
      rollout->reference.push_back(0.0F - *next++);
  }
}

void RolloutReference::score(std::vector<train::Rollout*> rollouts, int64_t together) {
  const at::NoGradGuard no_grad;
  std::optional<WithoutAdapter> bare;
  if (!other_) bare.emplace(base_);
  nn::CausalLm& model = other_ ? *other_->model : *base_.model;
  int64_t batches = (std::ssize(rollouts) + together - 1) / together;
  // Every rank takes part in every pass where the weights are gathered for it.
  const nn::Residency* const residency = model.residency();
  if (residency != nullptr && residency->is_collective())
    for (const int64_t of_rank : comm::exchange_words(group_, std::vector<int64_t>{batches}))
      batches = std::max(batches, of_rank);
  for (int64_t batch = 0; batch < batches; ++batch) {
    const int64_t first = std::min(batch * together, std::ssize(rollouts));
    const int64_t end = std::min(first + together, std::ssize(rollouts));
    score_batch(model, {rollouts.begin() + first, rollouts.begin() + end});
  }
}

}  // namespace convoy::recipes
