// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/compute_machine.h"

#include "convoy/core/base/cpu_level_limit.h"
#include "convoy/core/base/usable_memory.h"

namespace convoy::recipes {

sizing::Machine compute_machine(const device::RankDevice& rank_device) {
  if (!rank_device.device.is_cpu())
    return {.hardware = sizing::Hardware::Gpu, .has_bf16 = rank_device.has_bf16};
  return {.hardware = sizing::Hardware::Cpu,
          .device_bytes = total_memory_bytes(),
          .cpu_level = std::string(kCpuLevels[static_cast<size_t>(best_cpu_level())])};
}

}  // namespace convoy::recipes
