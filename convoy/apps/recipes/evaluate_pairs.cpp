// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/evaluate_pairs.h"

#include <numeric>
#include <utility>
#include <vector>

#include "convoy/apps/recipes/training/reference_scores.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/settings/tasks.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/data/datasets/batch_plan.h"
#include "convoy/train/loop/evaluation.h"
#include "convoy/train/loop/preference_objective.h"

namespace convoy::recipes {
namespace {

// The model against which the training of `settings` compares.
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

std::vector<double> reference_scores_of(const OpenedModel& evaluated,
                                        const settings::TrainSettings& settings,
                                        const data::TokenDataset& pairs, int64_t batch_rows,
                                        RankShare& share, const Log& log) {
  const ModelRequest request = reference_request(evaluated.request, settings, log);
  require_tokenizer_of(settings.preference.reference, evaluated.tokenizer, evaluated.request.name);
  const LoadedModel reference = load_model(request, log);
  log.info(fmt::format("reference ({}): log-probabilities of {}", settings.preference.reference,
                       counted(pairs.num_rows() / 2, "pair")));
  return scores_of(*reference.model, pairs, batch_rows, share, log);
}

}  // namespace

nlohmann::json evaluate_pairs(RankShare& share, OpenedModel evaluated,
                              const settings::TrainSettings& settings,
                              const data::TokenDataset& pairs, int64_t batch_pairs,
                              const Log& log) {
  const at::NoGradGuard no_grad;
  const int64_t rows_of_pair = settings::rows_of_item(settings.task_facts());
  const objectives::PairObjective loss(settings);
  train::ReferenceScores reference;
  if (loss.has_reference())
    reference.validation =
        reference_scores_of(evaluated, settings, pairs, rows_of_pair * batch_pairs, share, log);
  const LoadedModel loaded = load_weights(std::move(evaluated), log);
  share.follow_free_cores(log);
  reference.train = reference.validation;  // the plan has the same rows
  const data::BatchPlan plan(pairs, {.rows_of_item = rows_of_pair});
  train::PreferenceObjective objective(*loaded.model, plan, pairs, batch_pairs, loss,
                                       std::move(reference));
  const train::Evaluation found = *objective.evaluate(share.group(), {});
  nlohmann::json figures = {{"loss", found.loss}, {"pairs", found.rows}};
  for (const auto& [name, value] : found.others) figures[name] = value;
  return figures;
}

}  // namespace convoy::recipes
