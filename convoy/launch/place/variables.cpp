// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/variables.h"

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"

namespace convoy::launch {

std::string Fact::text() const { return fmt::format("{}={}", variable, number); }

const std::vector<std::string_view>& Variables::all() {
  static const std::vector<std::string_view> kNames = {
      "CROSS_RANK",
      "CROSS_SIZE",
      "GROUP_RANK",
      "GROUP_WORLD_SIZE",
      "JOB_COMPLETION_INDEX",
      "JSM_NAMESPACE_LOCAL_RANK",
      "JSM_NAMESPACE_LOCAL_SIZE",
      "JSM_NAMESPACE_RANK",
      "JSM_NAMESPACE_SIZE",
      "LOCAL_RANK",
      "LOCAL_SIZE",
      "LOCAL_WORLD_SIZE",
      "LSB_DJOB_RANKFILE",
      "LSB_JOBID",
      "MASTER_ADDR",
      "MASTER_PORT",
      "MPI_LOCALNRANKS",
      "MPI_LOCALRANKID",
      "MV2_COMM_WORLD_LOCAL_RANK",
      "MV2_COMM_WORLD_LOCAL_SIZE",
      "MV2_COMM_WORLD_RANK",
      "MV2_COMM_WORLD_SIZE",
      "OMPI_COMM_WORLD_LOCAL_RANK",
      "OMPI_COMM_WORLD_LOCAL_SIZE",
      "OMPI_COMM_WORLD_RANK",
      "OMPI_COMM_WORLD_SIZE",
      "OMPI_MCA_orte_num_nodes",
      "PET_MASTER_ADDR",
      "PET_MASTER_PORT",
      "PET_NNODES",
      "PET_NODE_RANK",
      "PMIX_NAMESPACE",
      "PMIX_RANK",
      "PMI_LOCAL_RANK",
      "PMI_LOCAL_SIZE",
      "PMI_RANK",
      "PMI_SIZE",
      "RANK",
      "SLURM_GTIDS",
      "SLURM_JOBID",
      "SLURM_JOB_ID",
      "SLURM_JOB_NODELIST",
      "SLURM_JOB_NUM_NODES",
      "SLURM_LOCALID",
      "SLURM_NNODES",
      "SLURM_NODEID",
      "SLURM_NODELIST",
      "SLURM_NPROCS",
      "SLURM_NTASKS",
      "SLURM_PROCID",
      "SLURM_STEPID",
      "SLURM_STEP_ID",
      "SLURM_STEP_NODELIST",
      "SLURM_STEP_NUM_NODES",
      "SLURM_STEP_NUM_TASKS",
      "SLURM_STEP_TASKS_PER_NODE",
      "SLURM_TASKS_PER_NODE",
      "TORCHELASTIC_MAX_RESTARTS",
      "TORCHELASTIC_RESTART_COUNT",
      "TORCHELASTIC_RUN_ID",
      "TORCHELASTIC_USE_AGENT_STORE",
      "WORLD_SIZE",
  };
  return kNames;
}

std::string Variables::text(std::string_view name) const {
  CONVOY_INVARIANT(std::binary_search(all().begin(), all().end(), name),
                   "{} is missing in the table of variables", name);
  const auto found = environment_.find(std::string(name));
  return found == environment_.end() ? "" : found->second;
}

std::string Variables::pair(std::string_view name) const {
  return has(name) ? fmt::format("{}={}", name, text(name)) : "";
}

Fact Variables::number(std::string_view name) const {
  const std::string value = text(name);
  if (value.empty()) return {};
  const int number = text_as<int>(value).value_or(-1);
  if (number < 0)
    throw ConfigError(
        fmt::format("wanted a number from 0 on in the variable {}, found `{}`", name, value),
        {.hint = "set it right, unset it, or choose another source with --env-source"});
  return {number, std::string(name)};
}

Fact Variables::first_number(const std::vector<std::string_view>& names) const {
  Fact first;
  for (const std::string_view name : names) {
    const Fact fact = number(name);
    if (!fact.known()) continue;
    if (!first.known()) first = fact;
    if (first.number != fact.number)
      throw ConfigError(
          fmt::format("{} and {} mean the same and disagree", first.text(), fact.text()),
          {.hint = "unset one of them"});
  }
  return first;
}

}  // namespace convoy::launch
