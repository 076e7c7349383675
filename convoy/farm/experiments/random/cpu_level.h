// SPDX-License-Identifier: Apache-2.0
//
// The instruction sets that the sweep kernels may use. They are compiled once per level and give
// the same bits at each; the level is chosen when an experiment is built. Thread-safe.
#pragma once

#include <string_view>
#include <vector>

namespace convoy::experiments {

enum class CpuLevel {
  Scalar,  // any x86-64
  Avx2,    // with FMA
  Avx512,  // F, DQ, VL
};

CpuLevel best_cpu_level();
std::vector<CpuLevel> usable_cpu_levels();  // lowest first
std::string_view cpu_level_name(CpuLevel level);

}  // namespace convoy::experiments
