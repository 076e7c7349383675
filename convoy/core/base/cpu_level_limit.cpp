// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/cpu_level_limit.h"

#include <algorithm>
#include <cstdlib>

#include "convoy/core/base/error.h"

namespace convoy {

int limited_cpu_level(int best, int highest, std::string_view wanted) {
  if (wanted.empty()) return best;
  const auto* const named = std::find(kCpuLevels.begin(), kCpuLevels.end(), wanted);
  const std::string usable =
      fmt::format("{}", fmt::join(kCpuLevels.begin(), kCpuLevels.begin() + best + 1, ", "));
  CONVOY_CHECK(named != kCpuLevels.end(), ConfigError,
               "CONVOY_CPU_LEVEL is '{}', which is no level of loops: this CPU has {}", wanted,
               usable);
  const int level = std::min(static_cast<int>(named - kCpuLevels.begin()), highest);
  CONVOY_CHECK(level <= best, ConfigError,
               "CONVOY_CPU_LEVEL is '{}', which this CPU lacks: it has {}", wanted, usable);
  return level;
}

int limited_cpu_level(int best, int highest) {
  const char* const wanted = std::getenv("CONVOY_CPU_LEVEL");
  return limited_cpu_level(best, highest, wanted == nullptr ? "" : wanted);
}

}  // namespace convoy
