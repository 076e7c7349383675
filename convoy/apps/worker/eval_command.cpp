// SPDX-License-Identifier: Apache-2.0
//
// `convoy eval` inside the worker: by a config file, or by --model and --data.
#include <iostream>

#include "convoy/apps/front/train_config.h"
#include "convoy/apps/worker/worker_command.h"
#include "convoy/base/error.h"
#include "convoy/recipes/evaluate_model.h"
#include "convoy/settings/resolve_train.h"

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
                     settings::SamplingFlags& sampling) {
  const auto is_set = [&](const char* key) {
    return resolved.value(fmt::format("generation.{}", key)).origin != "default";
  };
  if (is_set("max_new_tokens")) sampling.max_new_tokens = from.max_new_tokens;
  if (is_set("temperature")) {
    sampling.temperature = from.temperature;
    sampling.greedy = from.temperature == 0;
  }
  if (is_set("top_p")) sampling.top_p = from.top_p;
  if (is_set("top_k")) sampling.top_k = from.top_k;
  if (is_set("batch_size")) sampling.batch_size = from.batch_size;
  if (is_set("stop")) sampling.stop = from.stop;
}

}  // namespace

int eval_command(const Arguments& arguments) {
  CommonFlags worker;
  settings::ModelFlags model;
  settings::EvalFlags flags;
  settings::SamplingFlags sampling;
  // Answers are compared, so the likeliest ones are the default here.
  sampling.greedy = true;
  const auto parse = [&] {
    return config::parse_flags({config::list_fields(flags), config::list_fields(model),
                                config::list_fields(sampling), config::list_fields(worker)},
                               arguments);
  };
  const Arguments positionals = parse();
  if (!flags.samples.empty()) {
    print_figures(recipes::evaluate_samples(flags), worker.json);
    return 0;
  }
  settings::TrainSettings settings;
  if (!positionals.empty()) {
    const config::Resolved resolved = read_train_config(settings, positionals, "", worker.log());
    if (model.model.empty()) {
      model.model = settings.model.name;
      model.revision = settings.model.revision;
    }
    take_generation(resolved, settings.generation, sampling);
    parse();  // a flag beats the file
  } else {
    settings.model.max_seq_len = int64_t{1} << 30;  // the model's own limit
    CONVOY_CHECK(!model.model.empty() && !flags.data.empty(), ConfigError,
                 "wanted a config file, or --model FOLDER and --data FILE");
  }
  print_figures(recipes::evaluate_model(settings, model, flags, sampling, worker.log()),
                worker.json);
  return 0;
}

}  // namespace convoy::apps
