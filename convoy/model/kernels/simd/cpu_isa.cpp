// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/simd/cpu_isa.h"

#include <string>

#include "convoy/core/base/cpu_level_limit.h"
#include "convoy/core/base/error.h"
#include "convoy/model/kernels/simd/compiled_levels.h"

namespace convoy::kernels {
namespace {

constexpr CpuIsa kLevels[] = {CpuIsa::Baseline, CpuIsa::Avx2, CpuIsa::Avx512, CpuIsa::Avx512Bf16,
                              CpuIsa::Amx};

CpuIsa compiled_level(CpuIsa isa) {
  require_compiled(isa, kCompiledLevels);
  return isa;
}

}  // namespace

void require_compiled(CpuIsa isa, unsigned compiled) {
  if (is_compiled(isa, compiled)) return;
  std::string names;
  for (const CpuIsa level : kLevels) {
    if (is_compiled(level, compiled))
      names += fmt::format("{}{}", names.empty() ? "" : ", ", cpu_isa_name(level));
  }
  throw ConfigError(fmt::format("the loops of {} are needed, and this build has those of {} alone",
                                cpu_isa_name(isa), names),
                    {.hint = "run `./run build`: it compiles the loops of every CPU"});
}

CpuIsa best_cpu_isa() {
  static const CpuIsa best = compiled_level(static_cast<CpuIsa>(best_cpu_level()));
  return best;
}

std::vector<CpuIsa> usable_cpu_isas() {
  std::vector<CpuIsa> usable;
  for (const CpuIsa isa : kLevels) {
    if (isa <= best_cpu_isa() && is_compiled(isa)) usable.push_back(isa);
  }
  return usable;
}

std::string_view cpu_isa_name(CpuIsa isa) { return kCpuLevels[static_cast<size_t>(isa)]; }

}  // namespace convoy::kernels
