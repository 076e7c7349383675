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
  if (named == kCpuLevels.end())
    throw ConfigError(
        fmt::format("CONVOY_CPU_LEVEL is '{}', which is no level of loops: this CPU has {}", wanted,
                    usable),
        {.key = "CONVOY_CPU_LEVEL", .hint = "unset CONVOY_CPU_LEVEL, or set it to one of these"});
  const int level = std::min(static_cast<int>(named - kCpuLevels.begin()), highest);
  if (level > best)
    throw ConfigError(
        fmt::format("CONVOY_CPU_LEVEL is '{}', which this CPU lacks: it has {}", wanted, usable),
        {.key = "CONVOY_CPU_LEVEL", .hint = "unset CONVOY_CPU_LEVEL, or set it to one of these"});
  return level;
}

int limited_cpu_level(int best, int highest) {
  const char* const wanted = std::getenv("CONVOY_CPU_LEVEL");
  return limited_cpu_level(best, highest, wanted == nullptr ? "" : wanted);
}

}  // namespace convoy
