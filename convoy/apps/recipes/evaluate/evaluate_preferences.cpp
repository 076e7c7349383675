// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/evaluate/evaluate_preferences.h"

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "convoy/apps/recipes/training/reference_scores.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/settings/tasks.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/data/datasets/batches/batch_plan.h"
#include "convoy/train/loop/evaluation.h"
#include "convoy/train/loop/mismatched_rows.h"
#include "convoy/train/loop/preference_objective.h"
#include "convoy/train/loop/unpaired_objective.h"

namespace convoy::recipes {
namespace {

// The reference model with which the training of `settings` compares its model.
ModelRequest reference_request(const ModelRequest& evaluated,
                               const settings::TrainSettings& settings, const Log& log) {
  const std::string& wish = settings.preference.reference;
  ModelRequest request = evaluated;
  request.adapter.clear();
  request.revision = "main";
  if (wish != "base" && wish != "start") {
    request.name = wish;
    return request;
  }
  request.name = settings.model.name;
  request.revision = settings.model.revision;
  if (wish == "start")
    request.adapter = settings.tuning.lora.adapter;
  else if (const auto start = adapter_start(request.name, log))
    request.name = start->base;
  return request;
}

data::TokenDataset with_other_answers(const data::TokenDataset& rows,
                                      const settings::TrainSettings& settings) {
  std::vector<int64_t> all(static_cast<size_t>(rows.num_rows()));
  std::iota(all.begin(), all.end(), int64_t{0});
  return train::mismatched_rows(rows, train::mismatches_of(all), settings.model.max_seq_len);
}

std::vector<double> scores_of(nn::CausalLm& model, const data::TokenDataset& pairs,
                              int64_t batch_rows, RankShare& share, const Log& log) {
  std::vector<int64_t> rows(static_cast<size_t>(pairs.num_rows()));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  telemetry::ProgressOptions options{
      .label = "reference", .unit = "row", .total = pairs.num_rows()};
  if (log.level() == LogLevel::Quiet) options.style = telemetry::ProgressStyle::None;
  telemetry::Progress progress(options);
  const auto found =
      train::losses_of_rows(model, pairs, rows, batch_rows, share.group(), {}, [&](int64_t own) {
        const int64_t all = share.report_done(own);
        if (share.leads()) progress.update({.done = all});
      });
  progress.finish();
  share.report_done(0);
  std::vector<double> scores;
  for (const train::RowLoss& loss : *found) scores.push_back(-loss.nll);
  return scores;
}

train::ReferenceScores reference_scores_of(const OpenedModel& evaluated,
                                           const settings::TrainSettings& settings,
                                           const data::TokenDataset& rows, int64_t batch_rows,
                                           RankShare& share, const Log& log) {
  const ModelRequest request = reference_request(evaluated.request, settings, log);
  require_tokenizer_of(settings.preference.reference, evaluated.tokenizer,
                       evaluated.request.eos_token, evaluated.request.name);
  const LoadedModel reference = load_model(request, log);
  const int64_t together = settings::rows_of_item(settings.task_facts());
  log.info(fmt::format("reference ({}): log-probabilities of {}", settings.preference.reference,
                       counted(rows.num_rows() / together, together > 1 ? "pair" : "row")));
  train::ReferenceScores scores;
  scores.validation = scores_of(*reference.model, rows, batch_rows, share, log);
  if (!settings.estimates_divergence()) return scores;
  scores.mismatched_validation =
      scores_of(*reference.model, with_other_answers(rows, settings), batch_rows, share, log);
  // A single row has no mismatched answer.
  scores.mismatched_validation.resize(scores.validation.size());
  return scores;
}

std::unique_ptr<train::TrainingObjective> objective_of(
    nn::CausalLm& model, const data::BatchPlan& plan, const settings::TrainSettings& settings,
    int64_t batch_items, train::ReferenceScores reference, comm::Group& group) {
  reference.train = reference.validation;  // the plan trains on the same rows
  if (settings.task_facts().data == settings::TaskData::Judged)
    return std::make_unique<train::UnpairedObjective>(
        model, plan, plan.dataset(),
        train::UnpairedOptions{.preference = settings.preference,
                               .estimates_divergence = settings.estimates_divergence(),
                               .most_tokens = settings.model.max_seq_len,
                               .eval_batch_size = batch_items},
        std::move(reference), group);
  return std::make_unique<train::PreferenceObjective>(model, plan, plan.dataset(), batch_items,
                                                      objectives::PairObjective(settings),
                                                      std::move(reference));
}

}  // namespace

nlohmann::json evaluate_preferences(RankShare& share, OpenedModel evaluated,
                                    const settings::TrainSettings& settings,
                                    const data::TokenDataset& rows, int64_t batch_items,
                                    const Log& log) {
  const at::NoGradGuard no_grad;
  const int64_t together = settings::rows_of_item(settings.task_facts());
  train::ReferenceScores reference;
  if (settings.has_reference())
    reference = reference_scores_of(evaluated, settings, rows, together * batch_items, share, log);
  const LoadedModel loaded = load_weights(std::move(evaluated), log);
  share.follow_free_cores(log);
  const data::BatchPlan plan(rows, {.rows_of_item = together});
  const auto objective =
      objective_of(*loaded.model, plan, settings, batch_items, std::move(reference), share.group());
  const train::Evaluation found = *objective->evaluate(share.group(), {});
  nlohmann::json figures = {{"loss", found.loss}, {together > 1 ? "pairs" : "rows", found.rows}};
  for (const auto& [name, value] : found.others) figures[name] = value;
  return figures;
}

}  // namespace convoy::recipes
