// SPDX-License-Identifier: Apache-2.0
//
// `convoy process`: processes a data set with a model.
#include <fmt/format.h>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/process/process_config.h"
#include "convoy/apps/front/process/process_run.h"
#include "convoy/data/datasets/sources/dataset_info.h"

namespace convoy::apps {
namespace {

int list_datasets(const Context& context) {
  if (context.common.json)
    fmt::print("{}\n", data::dataset_list().dump(2));
  else
    fmt::print("{}", data::dataset_list_text());
  return 0;
}

int show_dataset(const Context& context, const ProcessConfig& config) {
  const nlohmann::ordered_json info = data::dataset_info({.name = config.flags.dataset_info,
                                                          .config = config.settings.data.config,
                                                          .split = config.settings.data.split});
  if (context.common.json)
    fmt::print("{}\n", info.dump(2));
  else
    fmt::print("{}", data::dataset_info_text(info));
  return 0;
}

int run_process(Context& context, const std::vector<std::string>& arguments) {
  ProcessConfig config;
  read_process_config(context, arguments, config);
  if (config.flags.list_datasets) return list_datasets(context);
  if (!config.flags.dataset_info.empty()) return show_dataset(context, config);
  return run_processing(context, config);
}

}  // namespace

Command process_command() {
  return {.name = "process",
          .summary = "Process a data set with a model",
          .usage =
              "convoy process [CONFIG.yaml] [key=value ...] --data KEY|NAME|PATH --model D "
              "[--output F]\n"
              "convoy process verify --data F --output O [flags]\n"
              "convoy process --list-datasets\n"
              "convoy process --dataset-info KEY",
          .examples =
              "convoy process --data numina_math --model deepseek-ai/DeepSeek-R1-Distill-Qwen-7B "
              "--batch-size 4 --dry-run\n"
              "convoy process --data examples/sums/test.jsonl --model examples/tally-3m "
              "--limit 8 --output sums.json\n"
              "convoy process --preset process-low-memory --ranks 2",
          .flags = process_flag_groups(),
          .first_flags = {"model", "data", "output", "stages", "limit", "samples", "max-tokens",
                          "keep", "ranks", "run-dir", "preset", "dry-run"},
          .run = run_process,
          .actions = {process_verify_action()},
          .group = HelpGroup::TrainAndUse};
}

}  // namespace convoy::apps
