// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/simd/cpu_isa.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "convoy/core/base/cpu_level_limit.h"

namespace convoy::kernels {
namespace {

#if defined(__x86_64__)
// Linux lends a process the tiles when it asks: Documentation/arch/x86/xstate.rst.
bool may_use_tiles() {
  constexpr int64_t kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int64_t kTileData = 18;               // XFEATURE_XTILEDATA
  return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

CpuIsa detect() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512 && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vbmi"))
    return may_use_tiles() ? CpuIsa::Amx : CpuIsa::Avx512Bf16;
  if (avx512) return CpuIsa::Avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return CpuIsa::Avx2;
#endif
  return CpuIsa::Baseline;
}

}  // namespace

CpuIsa best_cpu_isa() {
  static const CpuIsa best = static_cast<CpuIsa>(
      limited_cpu_level(static_cast<int>(detect()), static_cast<int>(CpuIsa::Amx)));
  return best;
}

std::vector<CpuIsa> usable_cpu_isas() {
  std::vector<CpuIsa> usable;
  for (CpuIsa isa :
       {CpuIsa::Baseline, CpuIsa::Avx2, CpuIsa::Avx512, CpuIsa::Avx512Bf16, CpuIsa::Amx}) {
    if (isa <= best_cpu_isa()) usable.push_back(isa);
  }
  return usable;
}

std::string_view cpu_isa_name(CpuIsa isa) { return kCpuLevels[static_cast<size_t>(isa)]; }

}  // namespace convoy::kernels
