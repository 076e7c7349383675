// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/evaluate_model.h"

#include <filesystem>
#include <map>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/data/encode_splits.h"
#include "convoy/data/encoded_rows.h"
#include "convoy/data/question.h"
#include "convoy/evaluate/sample_files.h"
#include "convoy/evaluate/text_match.h"
#include "convoy/recipes/answer_prompts.h"
#include "convoy/recipes/loaded_model.h"
#include "convoy/recipes/rank_share.h"
#include "convoy/recipes/row_output.h"
#include "convoy/telemetry/progress.h"
#include "convoy/train/evaluation.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;

struct Questions {
  std::vector<std::vector<int32_t>> prompts;
  std::vector<std::string> inputs;  // the prompts as text
  std::vector<std::string> references;
};

nlohmann::json figures_json(const evaluate::TextFigures& text) {
  nlohmann::json figures = {{"count", text.count}, {"exact_match", text.exact_match}};
  if (text.numeric_match) figures["numeric_match"] = *text.numeric_match;
  return figures;
}

nlohmann::json loss_json(const train::EvaluationFigures& figures) {
  return {{"loss", figures.loss()},
          {"perplexity", figures.perplexity()},
          {"mean_token_accuracy", figures.token_accuracy()},
          {"supervised_tokens", figures.supervised_tokens},
          {"rows", figures.rows}};
}

Questions read_questions(const LoadedModel& loaded, const fs::path& path,
                         const settings::TrainSettings& settings, int64_t limit, const Log& log) {
  const data::SampleEncoder encoder(loaded.tokenizer, loaded.template_or_null(),
                                    data::Supervise::Auto);
  data::Question question;
  std::string input;
  data::EncodedRows encoded(path, data::SchemaConfig::from(settings.data, settings.task),
                            data::bad_rows_named(settings.data.bad_rows), data::RowUse::Learn,
                            [&](const data::Sample& sample) {
                              question = data::split_answer(sample);
                              input = encoder.render(question.prompt, true);
                              return encoder.encode_prompt(question.prompt);
                            });
  Questions questions;
  while (limit == 0 || static_cast<int64_t>(questions.prompts.size()) < limit) {
    std::optional<data::EncodedSample> next = encoded.next();
    if (!next) break;
    questions.prompts.push_back(std::move(next->row.ids));
    questions.inputs.push_back(std::move(input));
    questions.references.push_back(std::move(question.reference));
  }
  encoded.finish(log);
  return questions;
}

// On the leading rank the answers to all questions, elsewhere nothing.
std::vector<evaluate::Sample> answer_questions(RankShare& share, const LoadedModel& loaded,
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
    own[{answer.prompt, answer.sample}] = line_of({{"input", questions.inputs[row]},
                                                   {"pred", answer.completion.text},
                                                   {"ref", questions.references[row]}});
  });
  std::vector<PlacedLine> lines;
  for (auto& [place, line] : own) lines.emplace_back(place.first, std::move(line));
  std::vector<evaluate::Sample> samples;
  share.gather_in_order(
      lines, 0, static_cast<int64_t>(questions.prompts.size()),
      [&samples](const std::string& line) {
        const auto sample = nlohmann::json::parse(line);
        samples.push_back({.input = sample["input"], .pred = sample["pred"], .ref = sample["ref"]});
      });
  return samples;
}

// The leading rank encodes, the others then find its token cache.
data::EncodedSplits encode(RankShare& share, const data::EncodeInputs& inputs,
                           data::Splits wanted) {
  if (!share.leads()) share.group().barrier();
  data::EncodedSplits splits = data::encode_splits(inputs, wanted);
  if (share.leads()) share.group().barrier();
  return splits;
}

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

// One file as the test split of `settings`, so that it goes through the same reading and masking as training.
settings::TrainSettings with_data(settings::TrainSettings settings, const std::string& data) {
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
    rows.push_back({.ids = {ids.begin(), ids.end()},
                    .supervised = {supervised.begin(), supervised.end()},
                    .source_index = dataset.source_index(row)});
  }
  return data::TokenDataset::from_rows(rows);
}

}  // namespace

nlohmann::json evaluate_samples(const settings::EvalFlags& flags) {
  nlohmann::json figures =
      figures_json(evaluate::score_samples(evaluate::read_samples(flags.samples)));
  if (!flags.output_dir.empty())
    write_file_atomic(fs::path(flags.output_dir) / "metrics.json", figures.dump(2) + "\n");
  return figures;
}

nlohmann::json evaluate_model(const settings::TrainSettings& given,
                              const settings::ModelFlags& model, const settings::EvalFlags& flags,
                              const settings::SamplingFlags& sampling,
                              const settings::EngineFlags& engine, const settings::RankFlags& ranks,
                              const Log& given_log) {
  const settings::TrainSettings settings =
      flags.data.empty() ? given : with_data(given, flags.data);
  const Log log = log_of_rank(ranks.ranks_folder, given_log);
  RankShare share(ranks);
  const LoadedModel loaded =
      load_model(model_request(model, engine, settings.data.template_path, share.placement()), log);
  const int64_t max_seq_len = std::min(settings.model.max_seq_len, loaded.model->max_positions());
  const data::EncodeInputs inputs{.data = settings.data,
                                  .task = settings.task,
                                  .max_seq_len = max_seq_len,
                                  .seed = static_cast<uint64_t>(settings.seed),
                                  .tokenizer = loaded.tokenizer,
                                  .chat_template = loaded.template_or_null(),
                                  .log = log};
  const bool wants_val = flags.data.empty() && flags.split == "val";
  const data::EncodedSplits splits =
      encode(share, inputs, wants_val ? data::Splits::TrainAndVal : data::Splits::Test);
  data::TokenDataset dataset = wants_val ? splits.val : splits.test;
  if (dataset.num_rows() == 0)
    throw ConfigError(fmt::format("the config has no {} rows", flags.split),
                      {.hint = "name a file with --data"});
  if (flags.limit > 0) dataset = first_rows(dataset, flags.limit);
  const at::NoGradGuard no_grad;
  nlohmann::json figures = loss_json(evaluate_loss(share, loaded, dataset, engine.batch_size, log));

  std::vector<evaluate::Sample> samples;
  if (flags.generate) {
    const std::string path = !flags.data.empty() ? flags.data
                             : wants_val         ? settings.data.val_path
                                                 : settings.data.test_path;
    if (path.empty())
      throw ConfigError("--generate needs a file of rows: this config makes its splits by shares",
                        {.hint = "name one with --data"});
    samples =
        answer_questions(share, loaded, read_questions(loaded, path, settings, flags.limit, log),
                         sampling, engine, log);
    if (share.leads()) figures.update(figures_json(evaluate::score_samples(samples)));
  }
  if (share.leads() && !flags.output_dir.empty()) {
    if (flags.generate)
      evaluate::write_samples(fs::path(flags.output_dir) / "samples.jsonl", samples);
    write_file_atomic(fs::path(flags.output_dir) / "metrics.json", figures.dump(2) + "\n");
  }
  share.finish();
  return share.leads() ? figures : nlohmann::json();
}

}  // namespace convoy::recipes
