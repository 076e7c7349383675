// SPDX-License-Identifier: Apache-2.0
//
// Environments as launchers set them, and functions that resolve them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/launch/place/environment_resolver.h"

namespace convoy::launch::resolver_tests {

inline Environment with(Environment base, const Environment& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

inline Environment without(Environment base, const std::vector<std::string>& names) {
  for (const std::string& name : names) base.erase(name);
  return base;
}

// The variables that srun gives task 5 of 7 on four nodes with 2, 2, 2 and 1 tasks.
inline const Environment kTask = {{"SLURM_JOB_ID", "123456"},
                                  {"SLURM_JOB_NODELIST", "gpu[08-12]"},
                                  {"SLURM_STEP_ID", "0"},
                                  {"SLURM_STEP_NODELIST", "gpu[09-12]"},
                                  {"SLURM_STEP_NUM_NODES", "4"},
                                  {"SLURM_STEP_NUM_TASKS", "7"},
                                  {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                                  {"SLURM_NTASKS", "10"},
                                  {"SLURM_NNODES", "5"},
                                  {"SLURM_TASKS_PER_NODE", "2(x5)"},
                                  {"SLURM_PROCID", "5"},
                                  {"SLURM_LOCALID", "1"},
                                  {"SLURM_NODEID", "2"},
                                  {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.99"}};

// The variables that srun gives a task if each of two nodes has one task.
inline const Environment kNodeTask = {{"SLURM_JOB_ID", "77"},
                                      {"SLURM_JOB_NODELIST", "n[1-2]"},
                                      {"SLURM_STEP_ID", "3"},
                                      {"SLURM_STEP_NODELIST", "n[1-2]"},
                                      {"SLURM_STEP_NUM_NODES", "2"},
                                      {"SLURM_STEP_NUM_TASKS", "2"},
                                      {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                                      {"SLURM_PROCID", "1"},
                                      {"SLURM_LOCALID", "0"},
                                      {"SLURM_NODEID", "1"}};

inline const Environment kBatchScript = {
    {"SLURM_JOB_ID", "77"},       {"SLURM_JOB_NODELIST", "n[1-2]"},
    {"SLURM_JOB_NUM_NODES", "2"}, {"SLURM_NTASKS", "1"},
    {"SLURM_PROCID", "0"},        {"SLURM_LOCALID", "0"},
    {"SLURM_NODEID", "0"},        {"SLURM_TASKS_PER_NODE", "1(x2)"}};

inline const Environment kTorchrun = {{"TORCHELASTIC_RUN_ID", "none"},
                                      {"RANK", "3"},
                                      {"WORLD_SIZE", "4"},
                                      {"LOCAL_RANK", "1"},
                                      {"LOCAL_WORLD_SIZE", "2"},
                                      {"GROUP_RANK", "1"},
                                      {"GROUP_WORLD_SIZE", "2"},
                                      {"MASTER_ADDR", "head"},
                                      {"MASTER_PORT", "29511"}};

inline const Environment kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                                     {"OMPI_COMM_WORLD_SIZE", "4"},
                                     {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                     {"PMIX_RANK", "3"},
                                     {"PMIX_NAMESPACE", "914096129"}};

inline const Environment kMpich = {
    {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};

inline std::string failure(const Environment& environment, const ResolveOptions& options = {}) {
  try {
    const ResolvedPlace place = resolve_place(environment, options);
    return "no error, source " + place.source;
  } catch (const ConfigError& error) {
    return error.sentence();
  }
}

inline ::testing::AssertionResult contains(const std::string& text,
                                           const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    if (text.find(part) == std::string::npos)
      return ::testing::AssertionFailure() << "`" << part << "` is not in: " << text;
  return ::testing::AssertionSuccess();
}

inline Origin row(const ResolvedPlace& place, const std::string& field) {
  for (const Origin& origin : place.origins)
    if (origin.field == field) return origin;
  ADD_FAILURE() << "no row " << field;
  return {};
}

}  // namespace convoy::launch::resolver_tests
