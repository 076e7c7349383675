// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/cpu_level_limit.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"

namespace convoy {
namespace {

#if defined(__x86_64__)
// Linux lets a process use the AMX tiles only after a request: Documentation/arch/x86/xstate.rst.
bool may_use_tiles() {
  constexpr int64_t kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int64_t kTileData = 18;               // XFEATURE_XTILEDATA
  return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

// The levels have the order of kCpuLevels.
enum class Level { Baseline, Avx2, Avx512, Avx512Bf16, Amx };

Level detect() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512 && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vbmi"))
    return may_use_tiles() ? Level::Amx : Level::Avx512Bf16;
  if (avx512) return Level::Avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Level::Avx2;
#endif
  return Level::Baseline;
}

}  // namespace

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
  return limited_cpu_level(best, highest, environment_text("CONVOY_CPU_LEVEL"));
}

int best_cpu_level() {
  return limited_cpu_level(static_cast<int>(detect()), static_cast<int>(Level::Amx));
}

}  // namespace convoy
