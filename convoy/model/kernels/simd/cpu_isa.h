// SPDX-License-Identifier: Apache-2.0
//
// The instruction sets that the inner loops may use. The loops are compiled once per level, so one
// binary runs on any x86-64 and the level is chosen when the program starts.
#pragma once

#include <string_view>
#include <vector>

namespace convoy::kernels {

// In the order of kCpuLevels.
enum class CpuIsa {
  Baseline,
  Avx2,        // with FMA
  Avx512,      // F, BW, DQ, VL
  Avx512Bf16,  // plus the bf16 dot product and VBMI
  Amx,         // plus units that multiply tiles of bf16
};

// Sets of levels: bit i is level i.
constexpr bool is_compiled(CpuIsa isa, unsigned compiled) {
  return ((compiled >> static_cast<unsigned>(isa)) & 1U) != 0;
}
// Throws ConfigError for a level that is not among `compiled`.
void require_compiled(CpuIsa isa, unsigned compiled);

// The best level of this machine, or the lower one that CONVOY_CPU_LEVEL names. Thread-safe. Throws
// ConfigError for a level that this machine or this build lacks.
CpuIsa best_cpu_isa();
// Every level that this machine can run and this build has, lowest first.
std::vector<CpuIsa> usable_cpu_isas();
std::string_view cpu_isa_name(CpuIsa isa);

}  // namespace convoy::kernels
