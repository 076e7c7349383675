// SPDX-License-Identifier: Apache-2.0
//
// `convoy eval` inside the worker: by a config file, or by --model and --data.
#include <iostream>

#include "convoy/apps/front/train_config.h"
#include "convoy/apps/worker/worker_command.h"
#include "convoy/base/error.h"
#include "convoy/recipes/evaluate_model.h"
#include "convoy/recipes/rank_share.h"
#include "convoy/settings/resolve_train.h"
#include "convoy/settings/template_kwargs.h"

namespace convoy::apps {
namespace {

void print_figures(const nlohmann::json& figures, bool json) {
  if (json) {
    std::cout << figures.dump() << std::endl;
    return;
  }
  for (const auto& [name, value] : figures.items())
    std::cout << fmt::format("{:<22}{}\n", name, value.dump());
  std::cout << std::flush;
}

// What the file says about answers holds unless a flag says otherwise; its defaults do not, since answers that are
// compared are the likeliest ones by default.
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

// A flag that the way of evaluating does not read is refused.
void check_flags(const settings::EvalFlags& flags, const settings::ModelFlags& model,
                 const settings::SamplingFlags& sampling, const settings::EngineFlags& engine,
                 const Arguments& positionals) {
  const std::vector<std::string> drawing = {
      "max_new_tokens", "temperature", "top_p", "top_k",   "min_p", "repetition_penalty", "n",
      "seed",           "greedy",      "stop",  "logprobs"};
  if (!flags.generate) {
    config::refuse_without_effect(sampling, drawing, "without --generate");
    config::refuse_without_effect(
        engine, {"kv_blocks", "prefill_chunk", "deterministic", "kv_dtype"}, "without --generate");
  }
  config::refuse_without_effect(sampling, {"logprobs"}, "with eval: its rows hold texts");
  if (!flags.data.empty())
    config::refuse_without_effect(flags, {"split"}, "with --data: the whole file is evaluated");
  if (flags.samples.empty()) return;
  const std::string where = "with --samples, which needs no model";
  config::refuse_without_effect(
      flags, {"data", "split", "limit", "generate", "template_kwargs", "bad_rows"}, where);
  config::refuse_without_effect(model, {"model", "adapter", "revision", "dtype"}, where);
  config::refuse_without_effect(engine, {"batch_size", "weights"}, where);
  if (!positionals.empty())
    throw ConfigError(fmt::format("`{}` has no effect {}", positionals[0], where),
                      {.key = positionals[0], .hint = "leave it out"});
}

}  // namespace

int eval_command(const Arguments& arguments) {
  CommonFlags worker;
  settings::ModelFlags model;
  settings::EvalFlags flags;
  settings::SamplingFlags sampling;
  settings::EngineFlags engine;
  settings::RankFlags ranks;
  const auto parse = [&] {
    return config::parse_flags(
        {config::list_fields(flags), config::list_fields(model), config::list_fields(sampling),
         config::list_fields(engine), config::list_fields(ranks), config::list_fields(worker)},
        arguments);
  };
  const Arguments positionals = parse();
  check_flags(flags, model, sampling, engine, positionals);
  if (!flags.samples.empty()) {
    print_figures(recipes::evaluate_samples(flags), worker.json);
    return 0;
  }
  settings::TrainSettings settings;
  if (!positionals.empty()) {
    const config::Resolved resolved = read_train_config(
        settings, positionals, "", recipes::log_of_rank(ranks.ranks_folder, worker.log()));
    if (settings.task == "classify")
      throw ConfigError("eval is of language models, found task classify",
                        {.key = "task",
                         .hint = "`convoy train` tests the best model of such a run itself: its "
                                 "training_results.json"});
    if (model.model.empty()) {
      model.model = settings.model.name;
      model.revision = settings.model.revision;
    }
    take_generation(resolved, settings.generation, sampling, engine);
    parse();
  } else {
    settings.model.max_seq_len = int64_t{1} << 30;  // the model's own limit
    CONVOY_CHECK(!model.model.empty() && !flags.data.empty(), ConfigError,
                 "wanted a config file, or --model FOLDER and --data FILE");
  }
  // A flag beats the file.
  if (!flags.template_kwargs.empty()) {
    settings::template_kwargs(flags.template_kwargs, "--template-kwargs");
    settings.data.template_kwargs = flags.template_kwargs;
  }
  if (!flags.bad_rows.empty()) settings.data.bad_rows = flags.bad_rows;
  // Answers are compared, so the likeliest ones are the default here.
  if (sampling.temperature.is_auto()) sampling.temperature = 0.0;
  const nlohmann::json figures =
      recipes::evaluate_model(settings, model, flags, sampling, engine, ranks, worker.log());
  if (!figures.is_null()) print_figures(figures, worker.json);
  return 0;
}

}  // namespace convoy::apps
