// SPDX-License-Identifier: Apache-2.0
//
// The levels whose loops this build has. A first build compiles the loops of its own machine alone,
// any other build all of them: cmake/CpuLevels.cmake.
#pragma once

#include "convoy/model/kernels/simd/cpu_isa.h"

namespace convoy::kernels {

inline constexpr unsigned kCompiledLevels = CONVOY_CPU_LEVELS;
constexpr bool is_compiled(CpuIsa isa) { return is_compiled(isa, kCompiledLevels); }

}  // namespace convoy::kernels
