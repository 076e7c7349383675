// SPDX-License-Identifier: Apache-2.0
#include "convoy/sweep/runner/workload_registry.h"

#include "convoy/base/error.h"
#include "convoy/sweep/command/command_workload.h"
#include "convoy/sweep/mf/mf_workload.h"
#include "convoy/sweep/ssm/ssm_workload.h"

namespace convoy::sweep {

std::unique_ptr<Workload> make_workload(const std::string& name, const std::string& mode,
                                        double timeout_seconds, std::shared_ptr<cuda::Device> gpu) {
  if (name == "ssm")
    return std::make_unique<SsmWorkload>(mode == "fast" ? Precision::Fast : Precision::Exact,
                                         best_cpu_level(), std::move(gpu));
  if (name == "mf")
    return std::make_unique<MfWorkload>(mode == "fast" ? Precision::Fast : Precision::Exact);
  if (name == "run") return std::make_unique<CommandWorkload>(timeout_seconds);
  throw ConfigError(fmt::format("unknown workload `{}` of a sweep", name),
                    {.hint = "it may be of a newer Convoy"});
}

std::string mode_of_version(const std::string& version) {
  const auto contains = [&](const char* word) { return version.find(word) != std::string::npos; };
  return contains("-fast") ? "fast" : contains("-exact") ? "exact" : "";
}

}  // namespace convoy::sweep
