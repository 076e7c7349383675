// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/worker_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace convoy::launch {
namespace {

struct LibraryDefault {
  const char* value;
  std::vector<std::string> names;  // the first is set when none of them is set
};

const std::array<LibraryDefault, 2>& library_variables() {
  static const std::array<LibraryDefault, 2> kVariables = {{
      // Python writes to a pipe in blocks: lines would come late, and the last lines before a crash
      // never.
      {"1", {"PYTHONUNBUFFERED"}},
      // Rows of changing length leave holes that a fixed segment cannot close. PYTORCH_ALLOC_CONF
      // is the newer name, which PyTorch 2.9 does not read for this (pytorch #183387); every
      // version reads the older one first.
      {"expandable_segments:True",
       {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}},
  }};
  return kVariables;
}

}  // namespace

std::map<std::string, std::string> library_defaults(
    const std::map<std::string, std::string>& environment) {
  std::map<std::string, std::string> defaults;
  for (const LibraryDefault& variable : library_variables())
    if (std::none_of(variable.names.begin(), variable.names.end(),
                     [&](const std::string& name) { return environment.contains(name); }))
      defaults[variable.names.front()] = variable.value;
  return defaults;
}

std::vector<Origin> library_origins(const std::map<std::string, std::string>& environment,
                                    bool amd) {
  std::vector<Origin> rows;
  for (const auto& [name, value] : library_defaults(environment))
    rows.push_back({.field = name, .value = value, .decided_by = "default"});
  std::vector<std::string> known = {"PYTHONHASHSEED"};
  for (const LibraryDefault& variable : library_variables())
    known.insert(known.end(), variable.names.begin(), variable.names.end());
  for (const auto& [name, value] : environment)
    if (name.starts_with("HSA_") || std::count(known.begin(), known.end(), name) > 0)
      rows.push_back({.field = name, .value = value, .decided_by = "the environment"});
  std::vector<std::string> unset = {"PYTHONHASHSEED"};
  if (amd)
    unset.insert(unset.end(),
                 {"HSA_NO_SCRATCH_RECLAIM", "HSA_ENABLE_SDMA", "HSA_FORCE_FINE_GRAIN_PCIE"});
  for (const std::string& name : unset)
    if (!environment.contains(name))
      rows.push_back({.field = name, .decided_by = "not set; ranks get the exported value"});
  return rows;
}

std::map<std::string, std::string> worker_environment(const JobLayout& job, int index) {
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

}  // namespace convoy::launch
