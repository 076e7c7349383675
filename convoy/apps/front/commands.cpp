// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/command.h"

namespace convoy::apps {

// The one registry of commands.
const std::vector<Command>& commands() {
  static const std::vector<Command> list = {
      init_command(),    train_command(),        launch_command(),       submit_command(),
      eval_command(),    score_command(),        generate_command(),     process_command(),
      merge_command(),   quantize_command(),     models_command(),       data_command(),
      tokens_command(),  config_command(),       runs_command(),         gpu_info_command(),
      topo_command(),    monitor_command(),      memory_check_command(), doctor_command(),
      profile_command(), bench_command(),        sweep_command(),        store_command(),
      help_command(),    sweep_worker_command(),
  };
  return list;
}

}  // namespace convoy::apps
