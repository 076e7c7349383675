// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/generating_objective.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <utility>

#include "convoy/apps/recipes/generate/answer_prompts.h"
#include "convoy/apps/recipes/posttraining/joint_generation.h"
#include "convoy/apps/recipes/rank_share.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/core/io/row_output.h"
#include "convoy/data/evaluate/sample_files.h"
#include "convoy/generate/engine/engine.h"

namespace convoy::recipes {
namespace {

// Serialises the scores of a row for other ranks.
void pack(std::string& bytes, int64_t row, const evaluate::RowScores& scores) {
  std::vector<double> words = {static_cast<double>(row), scores.names_answer ? 1.0 : 0.0};
  words.insert(words.end(), scores.values.begin(), scores.values.end());
  bytes.append(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(double));
}

void unpack(std::string_view bytes, size_t num_metrics,
            std::map<int64_t, evaluate::RowScores>& rows) {
  std::vector<double> words(2 + num_metrics);
  const size_t length = words.size() * sizeof(double);
  for (; bytes.size() >= length; bytes.remove_prefix(length)) {
    std::memcpy(words.data(), bytes.data(), length);
    rows[static_cast<int64_t>(words[0])] = {.values = {words.begin() + 2, words.end()},
                                            .names_answer = words[1] > 0};
  }
}

void check_best_metric(const settings::TrainSettings& settings, const Questions& questions) {
  const std::string name = settings.train.best_metric_name();
  if (name != "numeric_match" && name != "answer_match") return;
  if (std::any_of(questions.references.begin(), questions.references.end(), evaluate::marks_answer))
    return;
  throw ConfigError(
      fmt::format("train.metric_for_best_model is {}, but none of the {} validation rows marks its "
                  "answer with \"####\" or \\boxed",
                  settings.train.metric_for_best_model, questions.size()),
      {.key = "train.metric_for_best_model", .hint = "eval_rougeL, or eval_exact_match"});
}

}  // namespace

Questions evaluation_questions(const LoadedModel& loaded, const settings::TrainSettings& settings,
                               const data::TokenDataset& validation, const Log& log) {
  if (validation.num_rows() == 0)
    throw ConfigError("train.predict_with_generate is true, but there are no validation rows",
                      {.key = "data.val_path", .hint = "name a file, or remove it"});
  const std::string path = file_of_split(settings.data, "val");
  Questions questions =
      read_questions(loaded.tokenizer, loaded.template_or_null(), path, settings,
                     {.limit = settings.train.generating_evaluation.eval_generate_rows,
                      .rows = rows_of_split(settings.data, validation),
                      .may_lack_answers = true},
                     log);
  if (questions.size() == 0)
    throw ConfigError("train.predict_with_generate is true, but no validation row has an answer",
                      {.file = path, .key = "train.predict_with_generate", .hint = "remove it"});
  check_best_metric(settings, questions);
  return questions;
}

// The answers that this rank has generated.
struct GeneratingObjective::Answers {
  std::map<int64_t, std::string> texts;  // by row
  double seconds = 0;
};

GeneratingObjective::GeneratingObjective(const LoadedModel& loaded, const data::BatchPlan& plan,
                                         const data::TokenDataset& validation,
                                         const Questions& questions,
                                         const settings::TrainSettings& settings,
                                         GeneratingOptions options, const Log& log)
    : LanguageObjective(*loaded.model, plan, validation, settings.train.rows_of_evaluation_batch()),
      loaded_(loaded),
      questions_(questions),
      settings_(settings),
      options_(std::move(options)),
      log_(log),
      metrics_(
          settings.train.generating_evaluation.measured_metrics(settings.train.best_metric_name()),
          settings.train.generating_evaluation.eval_json_schema) {
  for (const AskedPrompt& prompt : questions_.prompts)
    longest_row_tokens_ = std::max(longest_row_tokens_, std::ssize(prompt.ids));
  longest_row_tokens_ += settings.train.generating_evaluation.generation_max_new_tokens;
}

void GeneratingObjective::begin(train::StepRange steps, int rank) {
  step_ = steps.first;
  LanguageObjective::begin(steps, rank);
}

void GeneratingObjective::step_done(const train::StepOutcome& outcome) {
  ++step_;
  LanguageObjective::step_done(outcome);
}

generate::Request GeneratingObjective::request_of(int64_t row) const {
  const settings::GeneratingEvaluationSettings& own = settings_.train.generating_evaluation;
  const settings::GenerationSettings& general = settings_.generation;
  const AskedPrompt& asked = questions_.prompts[static_cast<size_t>(row)];
  return {.number = row,
          .prompt = asked.ids,
          .sampling = {.temperature = own.generation_temperature,
                       .top_k = general.top_k,
                       .top_p = general.top_p},
          .draw = {.seed = static_cast<uint64_t>(settings_.seed), .row = row},
          .max_new_tokens = own.generation_max_new_tokens,
          .stop = general.stop.names,
          .stop_ids = asked.is_chat ? loaded_.turn_end_ids : std::vector<int32_t>()};
}

std::optional<GeneratingObjective::Answers> GeneratingObjective::answer(
    comm::Group& group, const std::function<bool()>& stop_requested) {
  const auto start = std::chrono::steady_clock::now();
  settings::EngineFlags flags;
  flags.batch_size = settings_.generation.batch_size;
  generate::Engine engine(*loaded_.model, loaded_.tokenizer,
                          engine_config(flags, loaded_,
                                        {.longest_row_tokens = longest_row_tokens_,
                                         .engines_on_host = options_.engines_on_host,
                                         .is_beside_training = true},
                                        Log(LogLevel::Quiet)));
  Answers answers;
  for (int64_t row = group.rank(); row < questions_.size(); row += group.size()) {
    generate::Request request = request_of(row);
    // A prompt that fills the model leaves no room for an answer, which is then empty.
    if (static_cast<int64_t>(request.prompt.size()) >= loaded_.model->max_positions())
      answers.texts[row] = "";
    else
      engine.submit(std::move(request));
  }
  const nn::Residency* const residency = loaded_.model->residency();
  const GenerationEnd end = generate_jointly(
      {.engine = engine,
       .group = group,
       .steps_together = residency != nullptr && residency->is_collective(),
       .stop_requested = stop_requested,
       .limit_seconds = settings_.train.generating_evaluation.eval_generate_seconds,
       .ended = static_cast<int64_t>(answers.texts.size())},
      [](int64_t row) { return fmt::format("validation row {}", row + 1); },
      [&](const generate::Completion& ended) { answers.texts[ended.number] = ended.text; });
  if (end == GenerationEnd::Stopped) return std::nullopt;
  answers.seconds = seconds_since(start);
  return answers;
}

void GeneratingObjective::write_samples(comm::Group& group, const Answers& answers) const {
  std::vector<PlacedLine> lines;
  for (const auto& [row, text] : answers.texts) {
    const auto place = static_cast<size_t>(row);
    const evaluate::ScoredAnswer sample{
        .input = questions_.inputs[place], .pred = text, .refs = {questions_.references[place]}};
    lines.emplace_back(row, io::line_of(evaluate::sample_row(sample)));
  }
  std::optional<AtomicFile> file;
  if (group.rank() == 0)
    file.emplace(options_.samples_folder / fmt::format("step-{}.jsonl", step_));
  gather_in_order(group, lines, 0, questions_.size(),
                  [&file](const std::string& line) { file->write(line + "\n"); });
  if (file) file->commit();
}

void GeneratingObjective::add_figures(comm::Group& group, const Answers& answers,
                                      train::Evaluation& evaluation) const {
  std::string own;
  for (const auto& [row, text] : answers.texts) {
    const auto place = static_cast<size_t>(row);
    pack(own, row,
         metrics_.score({.input = questions_.inputs[place],
                         .pred = text,
                         .refs = {questions_.references[place]}}));
  }
  std::map<int64_t, evaluate::RowScores> rows;
  for (const std::string& bytes : group.all_gather_bytes(own))
    unpack(bytes, metrics_.names().size(), rows);
  evaluate::MetricMeans means(metrics_);
  for (const auto& [row, scores] : rows) means.add(scores);
  for (size_t metric = 0; metric < metrics_.names().size(); ++metric)
    if (const std::optional<double> mean = means.mean(metric))
      evaluation.others[metrics_.names()[metric]] = *mean;
  evaluation.others["generated_rows"] = static_cast<double>(means.count());
  evaluation.others["generate_seconds"] = answers.seconds;
  if (means.count() < questions_.size())
    log_.warning(fmt::format(
        "train.eval_generate_seconds: {} of {} validation rows were answered ({:.0f} %)",
        means.count(), questions_.size(),
        100 * static_cast<double>(means.count()) / static_cast<double>(questions_.size())));
}

std::optional<train::Evaluation> GeneratingObjective::evaluate(
    comm::Group& group, const std::function<bool()>& stop_requested) {
  std::optional<train::Evaluation> evaluation = LanguageObjective::evaluate(group, stop_requested);
  if (!evaluation) return std::nullopt;
  const std::optional<Answers> answers = answer(group, stop_requested);
  if (!answers) return std::nullopt;
  write_samples(group, *answers);
  add_figures(group, *answers, *evaluation);
  evaluation->seconds += answers->seconds;
  return evaluation;
}

}  // namespace convoy::recipes
