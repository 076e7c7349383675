// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/worker_environment.h"

#include <fmt/format.h>

#include <random>

namespace convoy::launch {

std::map<std::string, std::string> worker_environment(const JobPlace& job, int index) {
  const std::string rank = std::to_string(job.first_rank + index);
  const int local_world_size =
      job.local_world_size > 0 ? job.local_world_size : job.num_local_ranks;
  const std::string world_size = std::to_string(job.world_size);
  return {
      {"RANK", rank},
      {"LOCAL_RANK", std::to_string(job.first_local_rank + index)},
      {"WORLD_SIZE", world_size},
      {"LOCAL_WORLD_SIZE", std::to_string(local_world_size)},
      {"GROUP_RANK", std::to_string(job.node_rank)},
      {"GROUP_WORLD_SIZE", std::to_string(job.num_nodes)},
      {"ROLE_NAME", job.role},
      {"ROLE_RANK", rank},
      {"ROLE_WORLD_SIZE", world_size},
      {"MASTER_ADDR", job.master_address},
      {"MASTER_PORT", std::to_string(job.master_port)},
      {"TORCHELASTIC_RESTART_COUNT", std::to_string(job.restart_count)},
      {"TORCHELASTIC_MAX_RESTARTS", std::to_string(job.max_restarts)},
      {"TORCHELASTIC_RUN_ID", job.run_id},
      {"TORCHELASTIC_USE_AGENT_STORE", job.agent_hosts_store ? "True" : "False"},
  };
}

std::string new_run_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace convoy::launch
