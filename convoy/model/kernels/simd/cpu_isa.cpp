// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/simd/cpu_isa.h"

#include "convoy/core/base/cpu_level_limit.h"

namespace convoy::kernels {

CpuIsa best_cpu_isa() {
  static const CpuIsa best = static_cast<CpuIsa>(best_cpu_level());
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
