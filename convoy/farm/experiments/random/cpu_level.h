// SPDX-License-Identifier: Apache-2.0
//
// The instruction sets that the sweep kernels may use. They are compiled once per level and give
// the same bits at each; the level is chosen when an experiment is built. Thread-safe.
#pragma once

#include <string_view>
#include <vector>

namespace convoy::experiments {

// The order is that of kCpuLevels.
enum class CpuLevel {
  Scalar,  // any x86-64
  Avx2,    // AVX2 with FMA
  Avx512,  // AVX-512 F, DQ and VL
};

// The level of this machine, or the lower level that CONVOY_CPU_LEVEL names. Throws ConfigError for
// a level that this machine cannot run.
CpuLevel best_cpu_level();
std::vector<CpuLevel> usable_cpu_levels();  // lowest level first
std::string_view cpu_level_name(CpuLevel level);

// Declares the constant `name` once per level. The file that is compiled for a level defines it;
// of_cpu_level() picks one.
#define CONVOY_DECLARE_AT_EACH_LEVEL(Kernels, name) \
  namespace scalar {                                \
  extern const Kernels name;                        \
  }                                                 \
  namespace avx2 {                                  \
  extern const Kernels name;                        \
  }                                                 \
  namespace avx512 {                                \
  extern const Kernels name;                        \
  }

// Throws StateError if this machine cannot run the level.
void check_cpu_level(CpuLevel level);
template <class Kernels>
const Kernels& of_cpu_level(CpuLevel level, const Kernels& scalar, const Kernels& avx2,
                            const Kernels& avx512) {
  check_cpu_level(level);
  return level == CpuLevel::Scalar ? scalar : level == CpuLevel::Avx2 ? avx2 : avx512;
}

}  // namespace convoy::experiments
