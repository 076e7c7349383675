// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/random/cpu_level.h"

#include "convoy/core/base/cpu_level_limit.h"
#include "convoy/core/base/error.h"

namespace convoy::experiments {
namespace {

CpuLevel detect() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return CpuLevel::Avx512;
  if (avx2) return CpuLevel::Avx2;
#endif
  return CpuLevel::Scalar;
}

}  // namespace

CpuLevel best_cpu_level() {
  static const CpuLevel best = static_cast<CpuLevel>(
      limited_cpu_level(static_cast<int>(detect()), static_cast<int>(CpuLevel::Avx512)));
  return best;
}

std::vector<CpuLevel> usable_cpu_levels() {
  std::vector<CpuLevel> usable;
  for (const CpuLevel level : {CpuLevel::Scalar, CpuLevel::Avx2, CpuLevel::Avx512}) {
    if (level <= best_cpu_level()) usable.push_back(level);
  }
  return usable;
}

std::string_view cpu_level_name(CpuLevel level) {
  switch (level) {
    case CpuLevel::Scalar:
      return "scalar";
    case CpuLevel::Avx2:
      return "avx2";
    case CpuLevel::Avx512:
      return "avx512";
  }
  return "";
}

void check_cpu_level(CpuLevel level) {
  CONVOY_INVARIANT(level <= best_cpu_level(), "this machine cannot run {}", cpu_level_name(level));
}

}  // namespace convoy::experiments
