// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/rejection/rejection_phases.h"

#include <fmt/format.h>

#include <utility>

#include "convoy/apps/front/train/train_line.h"
#include "convoy/core/config/describe.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

// Passes every value as an override, so that no generation_config.json and no environment variable
// decides a value.
void resolve_all(settings::ProcessSettings wanted, ProcessConfig& config) {
  config::Sources sources;
  for (const auto& [path, value] : config::assigned_values(config::list_fields(wanted)))
    sources.overrides.push_back(fmt::format("{}={}", path, value));
  config.resolved = settings::resolve_process(config.settings, sources);
}

}  // namespace

RejectionPhases::RejectionPhases(settings::TrainSettings train, fs::path folder,
                                 RoundWorkers workers)
    : train_(std::move(train)), folder_(std::move(folder)), workers_(std::move(workers)) {}

fs::path RejectionPhases::folder_of(int64_t round) const {
  return folder_ / kRoundsFolder / std::to_string(round);
}
fs::path RejectionPhases::generate_folder(int64_t round) const {
  return folder_of(round) / "generate";
}
fs::path RejectionPhases::train_folder(int64_t round) const { return folder_of(round) / "train"; }
fs::path RejectionPhases::evaluate_folder(int64_t round) const {
  return folder_of(round) / "evaluate";
}
fs::path RejectionPhases::samples_file(int64_t round) const {
  return folder_of(round) / "samples.jsonl";
}
fs::path RejectionPhases::rows_file(int64_t round) const { return folder_of(round) / "rows.jsonl"; }
fs::path RejectionPhases::answers_file(int64_t round) const {
  return folder_of(round) / "answers.jsonl";
}

fs::path RejectionPhases::result_of(int64_t round) const {
  return (train_folder(round) / (trains_all() ? "model" : "adapter")).lexically_relative(folder_);
}

RejectionPhases::RoundModel RejectionPhases::model_after(int64_t round) const {
  if (round == 0) return {train_.model.name, train_.tuning.lora.adapter};
  const std::string result = (folder_ / result_of(round)).string();
  if (trains_all()) return {result, ""};
  return {train_.model.name, result};
}

settings::ProcessSettings RejectionPhases::process_settings(const RoundModel& model) const {
  const settings::RejectionSettings& rejection = train_.rejection;
  settings::ProcessSettings process;
  process.stages = {"generate", "verify"};
  process.model.name = model.name;
  process.model.adapter = model.adapter;
  process.model.revision = train_.model.revision;
  process.model.dtype = train_.wished_dtype();
  const std::string format = train_.tuning.quantization.format(train_.tuning.mode == "qlora");
  if (format != "none") process.model.quantization = format;
  process.model.double_quant =
      (format == "nf4" || format == "fp4") && train_.tuning.quantization.double_quant;
  process.model.template_path = train_.data.template_path;
  process.model.template_kwargs = train_.data.template_kwargs;
  process.data.problem_field = rejection.problem_field;
  process.data.solution_field = rejection.solution_field;
  process.data.answer_field = rejection.answer_field;
  process.data.bad_rows = train_.data.bad_rows == "error" ? "error" : "keep";
  process.prompts.chat = rejection.chat;
  process.prompts.system = train_.data.system_prompt;
  process.prompts.generate = rejection.prompt;
  process.generate.repetition_penalty = rejection.repetition_penalty;
  process.generate.max_tokens = rejection.max_tokens;
  process.generate.stop = rejection.stop;
  process.output.csv = false;
  process.workers.world_size = workers_.count;
  process.workers.devices = workers_.devices;
  process.workers.threads = workers_.threads;
  process.workers.batch_size = rejection.batch_size;
  // A killed round that continues then ends with the same bytes.
  process.engine.deterministic = true;
  return process;
}

void RejectionPhases::settle_generate(int64_t round, ProcessConfig& config) const {
  const settings::RejectionSettings& rejection = train_.rejection;
  settings::ProcessSettings process = process_settings(model_after(round - 1));
  // Each round draws other samples, even when the model is the same.
  process.seed = train_.seed + round;
  process.run_dir = generate_folder(round).string();
  process.data.dataset = train_.data.train_path;
  process.generate.n = rejection.samples;
  process.generate.temperature = rejection.temperature;
  process.generate.top_k = rejection.top_k;
  process.generate.top_p = rejection.top_p;
  process.generate.min_p = rejection.min_p;
  process.output.path = samples_file(round).string();
  resolve_all(std::move(process), config);
}

void RejectionPhases::settle_evaluate(int64_t round, ProcessConfig& config) const {
  settings::ProcessSettings process = process_settings(model_after(round));
  process.seed = train_.seed;
  process.run_dir = evaluate_folder(round).string();
  process.data.dataset = train_.data.val_path;
  process.generate.temperature = 0;
  process.output.path = answers_file(round).string();
  resolve_all(std::move(process), config);
}

std::vector<std::string> RejectionPhases::train_words(int64_t round, const fs::path& rows) const {
  settings::TrainSettings train = train_;
  train.task = "sft";
  train.run_name = fmt::format("{}-{}", train_.run_name, round);
  train.rejection = {};
  train.data.train_path = rows.string();
  train.data.val_path.clear();
  // A truncated solution is no solution, so too long rows are dropped.
  if (train.data.truncation == "auto") train.data.truncation = "drop";
  train.train.output_dir = train_folder(round).string();
  train.train.resume_from_checkpoint = "auto";
  train.train.eval_strategy = "no";
  train.train.final_eval = false;
  if (train_.rejection.from == "last") {
    const RoundModel last = model_after(round - 1);
    train.model.name = last.name;
    train.tuning.lora.adapter = last.adapter;
  }
  settings::TrainSettings own = train_;
  std::vector<std::string> words;
  for (const auto& [path, value] :
       config::changed_values(config::list_fields(train), config::list_fields(own)))
    words.push_back(fmt::format("{}={}", path, value));
  return words;
}

}  // namespace convoy::apps
