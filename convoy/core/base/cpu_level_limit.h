// SPDX-License-Identifier: Apache-2.0
//
// CONVOY_CPU_LEVEL lowers the instruction set of every inner loop of a process, so that one machine
// can test the loops that other machines run. Thread-safe.
#pragma once

#include <array>
#include <string_view>

namespace convoy {

// The levels, lowest first. Tables of inner loops number their entries in this order, and may lack
// the highest levels.
inline constexpr std::array<std::string_view, 5> kCpuLevels = {"baseline", "avx2", "avx512",
                                                               "avx512_bf16", "amx"};

// The number of the level to use: `best`, which is the highest level of this machine, or a lower
// level that `wanted` names. An empty `wanted` names none. `highest` is the last level that the
// caller's loops are compiled for. Throws ConfigError for other words, and for a level that this
// machine lacks.
int limited_cpu_level(int best, int highest, std::string_view wanted);
// The same with the value of CONVOY_CPU_LEVEL as `wanted`.
int limited_cpu_level(int best, int highest);

// The number of the highest level that this machine has, or of the lower level that
// CONVOY_CPU_LEVEL names. Throws ConfigError as above.
int best_cpu_level();

}  // namespace convoy
