// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"
#include "convoy/launch/place/host_list.h"
#include "convoy/launch/place/rank_source.h"

namespace convoy::launch {
namespace {

// SLURM numbers steps from 0. Its special steps (batch script, salloc's shell, external) are
// numbers near 2^32, left out of the environment by most releases.
bool is_step_number(const std::string& text) {
  constexpr uint32_t kFirstSpecialStep = 0xfffffff0;
  return text_as<uint32_t>(text).value_or(kFirstSpecialStep) < kFirstSpecialStep;
}

std::string first_set(const Variables& variables, const std::vector<std::string_view>& names) {
  for (const std::string_view name : names)
    if (variables.has(name)) return std::string(name);
  return "";
}

// The number in the first variable that is set: the variable of the step, else a variable of older
// releases or of the job.
Fact preferred_number(const Variables& variables, const std::vector<std::string_view>& names) {
  const std::string name = first_set(variables, names);
  return name.empty() ? Fact{} : variables.number(name);
}

// sbatch and salloc that run within a step pass that step's variables on to the new job.
bool step_of_this_job(const Variables& variables) {
  if (!variables.has("SLURM_STEP_NODELIST") || !variables.has("SLURM_JOB_NODELIST")) return true;
  const auto step = expand_host_list(variables.text("SLURM_STEP_NODELIST"), "SLURM_STEP_NODELIST");
  auto job = expand_host_list(variables.text("SLURM_JOB_NODELIST"), "SLURM_JOB_NODELIST");
  std::sort(job.begin(), job.end());
  return std::all_of(step.begin(), step.end(), [&](const std::string& host) {
    return std::binary_search(job.begin(), job.end(), host);
  });
}

// SLURM_GTIDS lists the tasks of this node. SLURM sets it to "0" for a batch script, although the
// script may inherit the count of a step.
bool tasks_of_this_step(const Variables& variables, const RankSource& source) {
  if (!variables.has("SLURM_GTIDS") || !source.local_world_size.known()) return true;
  const std::string tasks = variables.text("SLURM_GTIDS");
  return 1 + std::count(tasks.begin(), tasks.end(), ',') == source.local_world_size.number;
}

bool is_task(const Variables& variables, std::vector<std::string>& notes) {
  if (!variables.has("SLURM_PROCID")) return false;
  const std::string step = first_set(variables, {"SLURM_STEP_ID", "SLURM_STEPID"});
  if (step.empty() || !is_step_number(variables.text(step))) {
    const int nodes = preferred_number(variables, {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"}).number;
    notes.push_back(
        "this is SLURM's batch script or shell, not a task started by srun, so "
        "SLURM_PROCID and SLURM_NTASKS do not count");
    if (nodes > 1)
      notes.push_back(
          fmt::format("the allocation has {} nodes and this starts ranks on one; `srun "
                      "--ntasks-per-node=1 convoy launch ...` uses all",
                      nodes));
    return false;
  }
  if (!step_of_this_job(variables)) {
    notes.push_back(
        fmt::format("{} and {} belong to another job, which this one was submitted from",
                    variables.pair(step), variables.pair("SLURM_STEP_NODELIST")));
    return false;
  }
  return true;
}

void read_layout(const Variables& variables, RankSource& source) {
  const std::string counts =
      first_set(variables, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  if (!counts.empty()) source.ranks_per_node = expand_counts(variables.text(counts), counts);
  const auto node = static_cast<size_t>(source.node_rank.number);
  if (source.node_rank.known() && node < source.ranks_per_node.size())
    source.local_world_size = {source.ranks_per_node[node], counts};
  if (!source.num_nodes.known() && !counts.empty())
    source.num_nodes = {static_cast<int>(source.ranks_per_node.size()), counts};
  source.hosts_variable =
      first_set(variables, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  if (!source.hosts_variable.empty())
    source.hosts = expand_host_list(variables.text(source.hosts_variable), source.hosts_variable);
}

}  // namespace

RankSource read_srun(const Variables& variables, std::vector<std::string>& notes) {
  RankSource source;
  if (!is_task(variables, notes)) return source;
  source.name = "srun";
  source.level = SourceLevel::Scheduler;
  source.rank = variables.number("SLURM_PROCID");
  source.world_size =
      preferred_number(variables, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"});
  source.local_rank = variables.number("SLURM_LOCALID");
  source.node_rank = variables.number("SLURM_NODEID");
  source.num_nodes =
      preferred_number(variables, {"SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"});
  read_layout(variables, source);
  if (!tasks_of_this_step(variables, source)) {
    notes.push_back(fmt::format(
        "{} is not the {} tasks of {}: these variables belong to a step that this job was "
        "submitted from",
        variables.pair("SLURM_GTIDS"), source.local_world_size.number,
        source.local_world_size.variable));
    return {};
  }
  if (!source.world_size.known()) source.missing.emplace_back("SLURM_NTASKS");
  if (!source.local_rank.known()) source.missing.emplace_back("SLURM_LOCALID");
  if (!source.node_rank.known()) source.missing.emplace_back("SLURM_NODEID");
  if (!source.local_world_size.known()) source.missing.emplace_back("SLURM_TASKS_PER_NODE");
  return source;
}

}  // namespace convoy::launch
