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
  Avx512Bf16,  // and the bf16 dot product and VBMI
  Amx,         // and units that multiply tiles of bf16
};

// The best level of this machine, or the lower one that CONVOY_CPU_LEVEL names. Thread-safe. Throws
// ConfigError for a level that this machine lacks.
CpuIsa best_cpu_isa();
// Every level this machine can run, lowest first.
std::vector<CpuIsa> usable_cpu_isas();
std::string_view cpu_isa_name(CpuIsa isa);

}  // namespace convoy::kernels
