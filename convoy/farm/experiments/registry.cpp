// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/registry.h"

#include "convoy/farm/experiments/ball/ball_workload.h"
#include "convoy/farm/experiments/mf/mf_flags.h"
#include "convoy/farm/experiments/ssm/ssm_flags.h"

namespace convoy::experiments {

const std::vector<WorkloadKind>& workload_kinds() {
  static const std::vector<WorkloadKind> kinds = {ssm_kind(), mf_kind(), ball_kind()};
  return kinds;
}

}  // namespace convoy::experiments
