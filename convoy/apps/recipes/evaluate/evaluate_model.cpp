// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/evaluate/evaluate_model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "convoy/apps/recipes/evaluate/evaluate_preferences.h"
#include "convoy/apps/recipes/evaluate/evaluate_rewards.h"
#include "convoy/apps/recipes/evaluate/questions.h"
#include "convoy/apps/recipes/generate/answer_prompts.h"
#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/rank_share.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/row_output.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/data/datasets/encoding/encode_splits.h"
#include "convoy/data/evaluate/answer_scores.h"
#include "convoy/data/evaluate/html_report.h"
#include "convoy/data/evaluate/sample_files.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/train/loop/evaluation.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;

nlohmann::json loss_json(const train::EvaluationFigures& figures) {
  return {{"loss", figures.loss()},
          {"perplexity", figures.perplexity()},
          {"mean_token_accuracy", figures.token_accuracy()},
          {"supervised_tokens", figures.supervised_tokens},
          {"rows", figures.rows}};
}

// Returns the answers to all questions on the leading rank, and nothing elsewhere.
std::vector<evaluate::ScoredAnswer> answer_questions(RankShare& share, const LoadedModel& loaded,
                                                     const Questions& questions,
                                                     const settings::SamplingFlags& sampling,
                                                     const settings::EngineFlags& engine,
                                                     const Log& log) {
  using Place = std::pair<int64_t, int64_t>;  // prompt, sample
  std::map<Place, std::string> own;
  const AnswerOptions options{
      .sampling = sampling, .engine = engine, .progress = {.label = "answer", .unit = "row"}};
  answer_prompts(share, loaded, questions.prompts, options, log, [&](const Answer& answer) {
    const auto row = static_cast<size_t>(answer.prompt);
    own[{answer.prompt, answer.sample}] =
        io::line_of(evaluate::sample_row({.input = questions.inputs[row],
                                          .pred = answer.completion.text,
                                          .refs = {questions.references[row]}}));
  });
  std::vector<PlacedLine> lines;
  for (auto& [place, line] : own) lines.emplace_back(place.first, std::move(line));
  std::vector<evaluate::ScoredAnswer> samples;
  gather_in_order(share.group(), lines, 0, static_cast<int64_t>(questions.prompts.size()),
                  [&samples](const std::string& line) {
                    const auto sample = nlohmann::json::parse(line);
                    samples.push_back({.input = sample["input"].get<std::string>(),
                                       .pred = sample["pred"],
                                       .refs = {sample["ref"].get<std::string>()}});
                  });
  return samples;
}

// The leading rank encodes first; the others then find its token cache.
data::EncodedSplits encode(RankShare& share, const data::EncodeInputs& inputs,
                           data::Splits wanted) {
  if (!share.leads()) share.group().barrier();
  data::EncodedSplits splits = data::encode_splits(inputs, wanted);
  if (share.leads()) share.group().barrier();
  return splits;
}

// Rows of a forward pass for the loss, unless the user gives a batch size. The pass keeps the
// logits of all rows, so the automatic batch size of an engine does not apply.
constexpr int64_t kLossRows = 16;

train::EvaluationFigures evaluate_loss(RankShare& share, const LoadedModel& loaded,
                                       const data::TokenDataset& dataset, int64_t batch_size,
                                       const Log& log) {
  telemetry::ProgressOptions options{.label = "loss", .unit = "row", .total = dataset.num_rows()};
  if (log.level() == LogLevel::Quiet) options.style = telemetry::ProgressStyle::None;
  telemetry::Progress progress(options);
  const auto show = [&](int64_t own) {
    const int64_t all = share.report_done(own);
    if (share.leads()) progress.update({.done = all});
  };
  const train::EvaluationFigures figures =
      *train::evaluate_loss(*loaded.model, dataset, batch_size, share.group(), {}, show);
  if (share.leads()) progress.update({.done = dataset.num_rows()});
  progress.finish();
  share.report_done(0);
  return figures;
}

int64_t longest_row_tokens(const data::TokenDataset& dataset) {
  int64_t longest = 0;
  for (int64_t row = 0; row < dataset.num_rows(); ++row)
    longest = std::max(longest, dataset.length_tokens(row));
  return longest;
}

// The rows whose loss is computed in one forward pass.
sizing::GenerationRows scored_together(const data::TokenDataset& dataset, int64_t batch_size) {
  constexpr int64_t kChunkRows = 256;  // a chunk of kernels/cross_entropy
  const int64_t rows = std::min(batch_size, dataset.num_rows());
  const int64_t longest = longest_row_tokens(dataset);
  return {.rows = rows,
          .row_tokens = longest,
          .step_tokens = rows * longest,
          .keeps_kv = false,
          .logit_rows = std::min(kChunkRows, rows * longest)};
}

// Makes one file the test split of `settings`, so that it is read and masked as in training.
settings::TrainSettings with_data(settings::TrainSettings settings, const std::string& data) {
  if (settings.task == "mixed") settings.task = "sft";
  settings.data.test_path = data;
  settings.data.train_path.clear();
  settings.data.val_path.clear();
  return settings;
}

data::TokenDataset first_rows(const data::TokenDataset& dataset, int64_t limit) {
  std::vector<data::EncodedRow> rows;
  for (int64_t row = 0; row < std::min(limit, dataset.num_rows()); ++row) {
    const auto ids = dataset.ids(row);
    const auto supervised = dataset.supervised(row);
    const auto weights = dataset.weights(row);
    rows.push_back({.ids = {ids.begin(), ids.end()},
                    .supervised = {supervised.begin(), supervised.end()},
                    .source_index = dataset.source_index(row),
                    .weights = {weights.begin(), weights.end()},
                    .is_desirable = dataset.is_desirable(row)});
  }
  return data::TokenDataset::from_rows(rows);
}

[[noreturn]] void refuse_missing_rows(const std::string& split, const std::string& else_do) {
  throw ConfigError(fmt::format("the config has no {} rows", split),
                    {.hint = "name a file with --data, " + else_do});
}

// The split that `flags` selects, at most flags.limit of its rows or pairs.
data::TokenDataset rows_to_evaluate(const data::EncodedSplits& splits, bool wants_val,
                                    const settings::TrainSettings& settings,
                                    const settings::EvalFlags& flags) {
  data::TokenDataset dataset = wants_val ? splits.val : splits.test;
  if (dataset.num_rows() == 0)
    refuse_missing_rows(flags.split, wants_val ? "or train with data.split.val_ratio=0.1"
                                               : "take --split val, or train with "
                                                 "data.split.test_ratio=0.1");
  if (flags.limit > 0)
    dataset = first_rows(dataset, settings::rows_of_item(settings.task_facts()) * flags.limit);
  return dataset;
}

settings::SamplingFlags settled_sampling(const EvaluateRun& run, const OpenedModel& opened,
                                         const Log& log) {
  const settings::SamplingSources sources{.model = model_sampling(opened.folder)};
  log.info(settings::sampling_line(run.sampling, sources));
  return settings::settle_sampling(run.sampling, sources);
}

// The answers that are generated together, with room for the rows whose loss is computed together.
sizing::GenerationRows answered_together(const EvaluateRun& run, const OpenedModel& opened,
                                         const Questions& questions,
                                         const settings::SamplingFlags& sampling,
                                         const sizing::GenerationRows& scored) {
  sizing::GenerationRows together =
      rows_together(run.engine, opened.request.device, longest_row(questions.prompts, sampling));
  together.rows = std::clamp<int64_t>(questions.size() * sampling.n, 1, together.rows);
  together.step_tokens = std::max(together.step_tokens, scored.step_tokens);
  together.logit_rows = std::max(together.rows, scored.logit_rows);
  return together;
}

// Measures `samples`, adds the results to `figures`, and writes the requested files.
void write_results(const EvaluateRun& run, const evaluate::TextMetrics& metrics,
                   const std::vector<evaluate::ScoredAnswer>& samples, nlohmann::json& figures) {
  const fs::path folder = run.flags.output_dir;
  if (run.flags.generate) {
    const evaluate::AnswerScores scored = evaluate::score_answers(metrics, samples);
    figures.update(scored.figures);
    if (!folder.empty()) evaluate::write_samples(folder / "samples.jsonl", samples);
    if (!run.metrics.report.empty())
      write_file_atomic(
          run.metrics.report,
          evaluate::html_report(
              {.title = run.model.model,
               .metric = evaluate::metric_of_report(run.metrics.report_metric, metrics.names()),
               .rows = static_cast<size_t>(run.metrics.report_rows)},
              samples, scored));
  }
  if (!folder.empty()) write_file_atomic(folder / "metrics.json", figures.dump(2) + "\n");
}

// Collective. For a configuration that learns from rewards.
nlohmann::json measure_rewards(RankShare& share, OpenedModel opened, const EvaluateRun& run,
                               const settings::TrainSettings& settings, const Log& log) {
  const settings::EvalFlags& flags = run.flags;
  const bool wants_val = flags.data.empty() && flags.split == "val";
  const std::string& file = wants_val ? settings.data.val_path : settings.data.test_path;
  if (file.empty())
    refuse_missing_rows(flags.split, wants_val ? "or set data.val_path"
                                               : "take --split val, or set data.test_path");
  const RewardsEvaluation found =
      evaluate_rewards(share, std::move(opened), settings, run.engine, file, flags.limit, log);
  if (const fs::path folder = flags.output_dir; share.leads() && !folder.empty()) {
    write_file_atomic(folder / "samples.jsonl", fmt::format("{}\n", fmt::join(found.lines, "\n")));
    write_file_atomic(folder / "metrics.json", found.figures.dump(2) + "\n");
  }
  return found.figures;
}

}  // namespace

nlohmann::json evaluate_model(const EvaluateRun& run, const Log& given_log) {
  const settings::EvalFlags& flags = run.flags;
  const settings::EngineFlags& engine = run.engine;
  // Checks this before any computation.
  const evaluate::TextMetrics metrics(run.metrics.metrics, run.metrics.json_schema);
  evaluate::metric_of_report(run.metrics.report_metric, metrics.names());
  const settings::TrainSettings settings =
      flags.data.empty() ? run.settings : with_data(run.settings, flags.data);
  const Log log = log_of_rank(run.ranks.ranks_folder, given_log);
  RankShare share(run.ranks);
  ModelRequest request =
      model_request(run.model, engine, settings.data.template_path, share.rank_device());
  request.eos_token = settings.data.eos_token;
  const bool compares = settings::learns_preferences(settings.task_facts());
  request.joins_projections = request.joins_projections && !compares;
  OpenedModel opened = open_model(request, log);
  const bool wants_val = flags.data.empty() && flags.split == "val";
  if (settings.task_facts().data == settings::TaskData::Rollouts) {
    nlohmann::json figures = measure_rewards(share, std::move(opened), run, settings, log);
    share.finish();
    return share.leads() ? figures : nlohmann::json();
  }
  const int64_t positions = families::read_decoder_spec(opened.folder).max_positions;
  const data::EncodeInputs inputs{.data = settings.data,
                                  .task = settings.task,
                                  .max_seq_len = std::min(settings.model.max_seq_len, positions),
                                  .seed = static_cast<uint64_t>(settings.seed),
                                  .tokenizer = opened.tokenizer,
                                  .chat_template = opened.template_or_null(),
                                  .log = log,
                                  .datasets = settings::mixed_datasets(settings.datasets),
                                  .warns = share.leads()};
  const data::EncodedSplits splits =
      encode(share, inputs, wants_val ? data::Splits::TrainAndVal : data::Splits::Test);
  const data::TokenDataset dataset = rows_to_evaluate(splits, wants_val, settings, flags);
  const int64_t loss_rows = engine.batch_size.value.value_or(kLossRows);  // rows or pairs
  if (compares) {
    say_generation_memory(
        opened, engine,
        scored_together(dataset, settings::rows_of_item(settings.task_facts()) * loss_rows),
        share.size(), log);
    nlohmann::json figures =
        evaluate_preferences(share, std::move(opened), settings, dataset, loss_rows, log);
    if (share.leads()) write_results(run, metrics, {}, figures);
    share.finish();
    return share.leads() ? figures : nlohmann::json();
  }
  sizing::GenerationRows together = scored_together(dataset, loss_rows);
  Questions questions;
  settings::SamplingFlags sampling;
  if (flags.generate) {
    questions =
        read_questions(opened.tokenizer, opened.template_or_null(),
                       file_of_split(settings.data, wants_val ? "val" : "test"), settings,
                       {.limit = flags.limit,
                        .rows = rows_of_split(settings.data, wants_val ? splits.val : splits.test)},
                       log);
    sampling = settled_sampling(run, opened, log);
    together = answered_together(run, opened, questions, sampling, together);
  }
  say_generation_memory(opened, engine, together, share.size(), log);
  const LoadedModel loaded = load_weights(std::move(opened), log);
  share.follow_free_cores(log);
  const at::NoGradGuard no_grad;
  nlohmann::json figures = loss_json(evaluate_loss(share, loaded, dataset, loss_rows, log));
  std::vector<evaluate::ScoredAnswer> samples;
  if (flags.generate) samples = answer_questions(share, loaded, questions, sampling, engine, log);
  if (share.leads()) write_results(run, metrics, samples, figures);
  share.finish();
  return share.leads() ? figures : nlohmann::json();
}

}  // namespace convoy::recipes
