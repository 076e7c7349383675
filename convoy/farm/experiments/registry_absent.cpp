// SPDX-License-Identifier: Apache-2.0
//
// Replaces registry.cpp in a build without the workloads (CONVOY_WHOLE=OFF): each name is known,
// and its use is refused. CONVOY_WORKLOADS holds the names, as in `"ball", "mf"`.
#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/registry.h"
#include "convoy/farm/experiments/self_check.h"

namespace convoy::experiments {
namespace {

[[noreturn]] void refuse_workload() {
  throw ConfigError("this build leaves Convoy's own workloads out",
                    {.hint = "`./run build` adds them; `convoy sweep run -- PROGRAM` is there"});
}

WorkloadKind absent_kind(std::string_view name) {
  return {.name = name,
          .summary = "Left out of this build: `./run build` adds it",
          .usage = "./run build",
          .example = "",
          .first_flags = {},
          .flags = []() -> std::unique_ptr<WorkloadFlags> { refuse_workload(); },
          .fields = [] { return config::Section(); },
          .make = [](const std::string& /*mode*/, std::shared_ptr<cuda::Device> /*gpu*/)
              -> std::unique_ptr<sweep::Workload> { refuse_workload(); }};
}

}  // namespace

const std::vector<WorkloadKind>& workload_kinds() {
  static const std::vector<WorkloadKind> kinds = [] {
    std::vector<WorkloadKind> list;
    for (const std::string_view name : {CONVOY_WORKLOADS}) list.push_back(absent_kind(name));
    return list;
  }();
  return kinds;
}

std::vector<CheckOutcome> self_check(const std::vector<std::shared_ptr<cuda::Device>>& /*gpus*/,
                                     const std::function<void(const CheckOutcome&)>& /*tell*/) {
  refuse_workload();
}

}  // namespace convoy::experiments
