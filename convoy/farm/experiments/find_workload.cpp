// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/registry.h"
#include "convoy/farm/sweep/command/command_workload.h"

namespace convoy::experiments {
namespace {

// The mode, "fast" or "exact", that the version of a stored sweep names.
std::string mode_of_version(const std::string& version) {
  const auto contains = [&](const char* word) { return version.find(word) != std::string::npos; };
  return contains("-fast") ? "fast" : contains("-exact") ? "exact" : "";
}

}  // namespace

const WorkloadKind* find_workload(std::string_view name) {
  const std::vector<WorkloadKind>& kinds = workload_kinds();
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const WorkloadKind& kind) { return kind.name == name; });
  return found == kinds.end() ? nullptr : &*found;
}

std::unique_ptr<sweep::Workload> make_workload(const std::string& name, const std::string& mode,
                                               double timeout_seconds,
                                               std::shared_ptr<cuda::Device> gpu) {
  if (name == "run") return std::make_unique<sweep::CommandWorkload>(timeout_seconds);
  if (const WorkloadKind* const kind = find_workload(name)) return kind->make(mode, std::move(gpu));
  throw ConfigError(fmt::format("unknown workload `{}` of a sweep", name),
                    {.hint = "a newer Convoy may have it"});
}

std::unique_ptr<sweep::Workload> workload_of_version(const std::string& name,
                                                     const std::string& version) {
  // A function in a user's program has no workload here; the store alone describes it.
  return make_workload(name.starts_with("function:") ? "run" : name, mode_of_version(version));
}

}  // namespace convoy::experiments
