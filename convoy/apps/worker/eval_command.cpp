// SPDX-License-Identifier: Apache-2.0
//
// `convoy eval` inside the worker: from a config file, or from --model and --data.
#include <filesystem>
#include <iostream>

#include "convoy/apps/front/train/train_config.h"
#include "convoy/apps/recipes/evaluate/evaluate_model.h"
#include "convoy/apps/recipes/rank_share.h"
#include "convoy/apps/worker/worker_command.h"
#include "convoy/core/base/error.h"
#include "convoy/core/settings/resolve_train.h"
#include "convoy/core/settings/template_kwargs.h"
#include "convoy/data/evaluate/figures_text.h"

namespace convoy::apps {
namespace {

// Takes the values about generation that the file sets; a flag overrides them. Defaults of the
// settings are not taken, because the model's own values come first.
void take_generation(const config::Resolved& resolved, const settings::GenerationSettings& from,
                     settings::SamplingFlags& sampling, settings::EngineFlags& engine) {
  const auto is_set = [&](const char* key) {
    return resolved.value(fmt::format("generation.{}", key)).origin != "default";
  };
  if (is_set("max_new_tokens")) sampling.max_new_tokens = from.max_new_tokens;
  if (is_set("temperature")) sampling.temperature = from.temperature;
  if (is_set("top_p")) sampling.top_p = from.top_p;
  if (is_set("top_k")) sampling.top_k = from.top_k;
  if (is_set("batch_size")) engine.batch_size = from.batch_size;
  if (is_set("stop")) sampling.stop = from.stop;
}

// Weights are quantised as in training, unless a flag overrides it.
void take_quantization(const settings::TuningSettings& tuning, settings::QuantizationFlags& held) {
  if (held.quantization != "auto") return;
  held.quantization = tuning.quantization.format(tuning.mode == "qlora");
  held.double_quant = tuning.quantization.double_quant && held.quantization != "int8" &&
                      held.quantization != "none";
  held.block_size = tuning.quantization.block_size;
  held.skip_modules = tuning.quantization.skip_modules;
}

// A note for users: a configuration names the model before its training, not the trained one.
std::string untrained_note(const settings::TrainSettings& settings) {
  const bool full = settings.tuning.mode == "full";
  const std::string result = full ? "model" : "adapter";
  std::filesystem::path folder = settings.train.output_dir;
  if (!std::filesystem::exists(folder / result)) folder = "RUN";
  return fmt::format(
      "evaluating {} as it was before the training: --{} {} evaluates the trained one",
      settings.model.name, result, (folder / result).string());
}

// Refuses a flag that has no effect in the chosen way of evaluating.
void check_flags(const recipes::EvaluateRun& run) {
  const std::vector<std::string> drawing = {
      "max_new_tokens", "temperature", "top_p", "top_k",   "min_p", "repetition_penalty", "n",
      "seed",           "greedy",      "stop",  "logprobs"};
  if (!run.flags.generate) {
    config::refuse_without_effect(run.sampling, drawing, "without --generate");
    config::refuse_without_effect(run.engine,
                                  {"kv_blocks", "prefill_chunk", "deterministic", "kv_dtype"},
                                  "without --generate");
    config::refuse_without_effect(
        run.metrics, {"metrics", "json_schema", "report", "report_metric", "report_rows"},
        "without --generate");
  }
  config::refuse_without_effect(run.sampling, {"logprobs"}, "with eval: its rows hold texts");
  if (!run.flags.data.empty())
    config::refuse_without_effect(run.flags, {"split"}, "with --data: the whole file is evaluated");
}

}  // namespace

int eval_command(const Arguments& arguments) {
  CommonFlags worker;
  recipes::EvaluateRun run;
  settings::TrainSettings& settings = run.settings;
  settings::ModelFlags& model = run.model;
  const settings::EvalFlags& flags = run.flags;
  const auto parse = [&] { return parse_call(run.lists(), run.ranks, worker, arguments); };
  const Arguments positionals = parse();
  check_flags(run);
  if (!positionals.empty()) {
    const Log log = recipes::log_of_rank(run.ranks.ranks_folder, worker.log());
    const config::Resolved resolved = read_train_config(settings, positionals, "", log);
    if (settings::learns_preferences(settings.task_facts()) && flags.generate)
      throw ConfigError(
          fmt::format("--generate compares answers with one right answer, found task {}",
                      settings.task),
          {.key = "task",
           .hint = "leave --generate out, or add task=sft and --data with rows of "
                   "answers"});
    if (settings.task_facts().data == settings::TaskData::Rollouts && flags.generate)
      throw ConfigError(fmt::format("an evaluation of task {} answers every problem greedily and "
                                    "measures rewards",
                                    settings.task),
                        {.key = "--generate", .hint = "leave --generate out"});
    if (settings.task_facts().has_teacher)
      throw ConfigError(
          fmt::format("eval does not ask the teacher of task {}", settings.task),
          {.key = "task",
           .hint =
               "the training's own evaluations (data.val_path) measure the divergence; task=sft "
               "and --data with rows of answers measure answers"});
    if (settings.task_facts().data == settings::TaskData::Windows)
      throw ConfigError("eval applies only to language models, found task classify",
                        {.key = "task",
                         .hint = "`convoy train` tests the best model of such a run itself: its "
                                 "training_results.json"});
    if (model.model.empty()) {
      model.model = settings.model.name;
      model.revision = settings.model.revision;
      if (model.adapter.empty()) log.info(untrained_note(settings));
    }
    take_generation(resolved, settings.generation, run.sampling, run.engine);
    parse();
    take_quantization(settings.tuning, model.held);
  } else {
    settings.model.max_seq_len = int64_t{1} << 30;  // no limit but the model's own
    if (model.model.empty() || flags.data.empty())
      throw ConfigError(
          "wanted a config file, or --model FOLDER and --data FILE",
          {.hint = "convoy eval run.yaml, or convoy eval --model FOLDER --data FILE"});
  }
  // A flag overrides the file.
  if (!flags.template_kwargs.empty()) {
    settings::template_kwargs(flags.template_kwargs, "--template-kwargs");
    settings.data.template_kwargs = flags.template_kwargs;
  }
  if (!flags.bad_rows.empty()) settings.data.bad_rows = flags.bad_rows;
  const nlohmann::json figures = recipes::evaluate_model(run, worker.log());
  if (!figures.is_null())
    std::cout << (worker.json ? figures.dump() + "\n" : evaluate::figures_text(figures))
              << std::flush;
  return 0;
}

}  // namespace convoy::apps
