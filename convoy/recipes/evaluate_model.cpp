// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/evaluate_model.h"

#include <filesystem>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/comm/group.h"
#include "convoy/data/encode_sample.h"
#include "convoy/data/encode_splits.h"
#include "convoy/data/sample_reader.h"
#include "convoy/data/schema.h"
#include "convoy/device/threads.h"
#include "convoy/evaluate/sample_files.h"
#include "convoy/evaluate/text_match.h"
#include "convoy/generate/generator.h"
#include "convoy/recipes/generate_text.h"
#include "convoy/recipes/loaded_model.h"
#include "convoy/telemetry/progress.h"
#include "convoy/train/evaluation.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A sample split into what the model is asked and what it should answer.
struct Question {
  data::Sample prompt;
  std::string reference;
};

Question split_answer(const data::Sample& sample) {
  Question question{.prompt = sample, .reference = {}};
  switch (sample.kind) {
    case data::Sample::Kind::Chat: {
      const Json& last = sample.messages.back();
      if (last.value("role", "") != "assistant")
        throw DataError("wanted a last turn of the assistant to compare with",
                        {.file = sample.file, .line = sample.line});
      question.reference = last.at("content").get<std::string>();
      question.prompt.messages.erase(question.prompt.messages.end() - 1);
      return question;
    }
    case data::Sample::Kind::ChatPromptCompletion:
      question.reference = sample.completion_messages.back().at("content").get<std::string>();
      question.prompt.kind = data::Sample::Kind::Chat;
      return question;
    case data::Sample::Kind::PromptCompletion:
      question.reference = sample.completion;
      return question;
    case data::Sample::Kind::Text:
      break;
  }
  throw DataError("a plain text has no answer to compare with",
                  {.file = sample.file, .line = sample.line, .hint = "leave out --generate"});
}

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

std::vector<Question> read_questions(const fs::path& path, const settings::TrainSettings& settings,
                                     int64_t limit) {
  data::SampleReader reader(path, data::SchemaConfig::from(settings.data, settings.task));
  std::vector<Question> questions;
  while (limit == 0 || static_cast<int64_t>(questions.size()) < limit) {
    const std::optional<data::Sample> sample = reader.next();
    if (!sample) break;
    questions.push_back(split_answer(*sample));
  }
  return questions;
}

std::vector<evaluate::Sample> answer(const LoadedModel& loaded,
                                     const std::vector<Question>& questions,
                                     const settings::SamplingFlags& sampling, const Log& log) {
  const data::SampleEncoder encoder(loaded.tokenizer, loaded.template_or_null(),
                                    data::Supervise::Auto);
  generate::Generator generator(*loaded.model, loaded.tokenizer,
                                generation_config(sampling, loaded));
  std::vector<std::vector<int32_t>> prompts;
  for (const Question& question : questions)
    prompts.push_back(encoder.encode_prompt(question.prompt).ids);
  telemetry::ProgressOptions options;
  options.label = "answer";
  options.unit = "row";
  options.total = static_cast<int64_t>(prompts.size());
  if (log.level() == LogLevel::Quiet) options.style = telemetry::ProgressStyle::None;
  telemetry::Progress progress(options);
  int64_t done = 0;
  const auto completions = generator.run(
      prompts, [&](const generate::Completion&) { progress.update({.done = ++done}); });
  progress.finish();
  std::vector<evaluate::Sample> samples;
  for (const generate::Completion& completion : completions) {
    const Question& question = questions[static_cast<size_t>(completion.index)];
    samples.push_back({.input = encoder.render(question.prompt, true),
                       .pred = completion.text,
                       .ref = question.reference});
  }
  return samples;
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
                              const settings::SamplingFlags& sampling, const Log& log) {
  const settings::TrainSettings settings =
      flags.data.empty() ? given : with_data(given, flags.data);
  device::share_cpu_threads(1);
  LoadedModel loaded = load_model(model_request(model, settings.data.template_path), log);
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
      data::encode_splits(inputs, wants_val ? data::Splits::TrainAndVal : data::Splits::Test);
  data::TokenDataset dataset = wants_val ? splits.val : splits.test;
  if (dataset.num_rows() == 0)
    throw ConfigError(fmt::format("the config has no {} rows", flags.split),
                      {.hint = "name a file with --data"});
  if (flags.limit > 0) dataset = first_rows(dataset, flags.limit);
  const at::NoGradGuard no_grad;
  const auto group = comm::join_group({}, std::chrono::seconds(60));
  nlohmann::json figures =
      loss_json(*train::evaluate_loss(*loaded.model, dataset, sampling.batch_size, *group, {}));

  std::vector<evaluate::Sample> samples;
  if (flags.generate) {
    const std::string path = !flags.data.empty() ? flags.data
                             : wants_val         ? settings.data.val_path
                                                 : settings.data.test_path;
    if (path.empty())
      throw ConfigError("--generate needs a file of rows: this config makes its splits by shares",
                        {.hint = "name one with --data"});
    samples = answer(loaded, read_questions(path, settings, flags.limit), sampling, log);
    figures.update(figures_json(evaluate::score_samples(samples)));
  }
  if (!flags.output_dir.empty()) {
    if (flags.generate)
      evaluate::write_samples(fs::path(flags.output_dir) / "samples.jsonl", samples);
    write_file_atomic(fs::path(flags.output_dir) / "metrics.json", figures.dump(2) + "\n");
  }
  return figures;
}

}  // namespace convoy::recipes
