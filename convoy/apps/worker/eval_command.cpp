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

}  // namespace

int eval_command(const Arguments& arguments) {
  WorkerFlags worker;
  settings::ModelFlags model;
  settings::EvalFlags flags;
  settings::SamplingFlags sampling;
  // Answers are compared, so the likeliest ones are the default here.
  sampling.greedy = true;
  const Arguments positionals =
      config::parse_flags({config::list_fields(flags), config::list_fields(model),
                           config::list_fields(sampling), config::list_fields(worker)},
                          arguments);
  if (!flags.samples.empty()) {
    print_figures(recipes::evaluate_samples(flags), worker.json);
    return 0;
  }
  settings::TrainSettings settings;
  if (!positionals.empty()) {
    read_train_config(settings, positionals, "", worker.log());
    if (model.model.empty()) model.model = settings.model.name;
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
