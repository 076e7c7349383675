// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/simd/simd_kernels.h"

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/simd/compiled_levels.h"

namespace convoy::kernels {

#define CONVOY_SIMD_TABLES(isa)                       \
  namespace isa {                                     \
  extern const SimdKernels<float> kFloatTable;        \
  extern const SimdKernels<c10::BFloat16> kBf16Table; \
  }
CONVOY_SIMD_TABLES(baseline)
CONVOY_SIMD_TABLES(avx2)
CONVOY_SIMD_TABLES(avx512)
CONVOY_SIMD_TABLES(avx512_bf16)
#undef CONVOY_SIMD_TABLES
namespace amx {
const SimdKernels<c10::BFloat16>& bf16_table();
}

namespace {

void require_usable(CpuIsa isa) {
  CONVOY_INVARIANT(isa <= best_cpu_isa(), "this machine cannot run {}", cpu_isa_name(isa));
  require_compiled(isa, kCompiledLevels);
}

// Without a fault in the tables no caller gets here.
[[noreturn]] void refuse_level(CpuIsa isa) {
  throw StateError(fmt::format("{} has no table of loops", cpu_isa_name(isa)));
}

// A table in a discarded branch needs no definition, so a build may leave its unit out.
const SimdKernels<float>& float_table(CpuIsa isa) {
  require_usable(isa);
  if constexpr (is_compiled(CpuIsa::Avx512Bf16)) {
    if (isa >= CpuIsa::Avx512Bf16) return avx512_bf16::kFloatTable;
  }
  if constexpr (is_compiled(CpuIsa::Avx512)) {
    if (isa == CpuIsa::Avx512) return avx512::kFloatTable;
  }
  if constexpr (is_compiled(CpuIsa::Avx2)) {
    if (isa == CpuIsa::Avx2) return avx2::kFloatTable;
  }
  if constexpr (is_compiled(CpuIsa::Baseline)) {
    if (isa == CpuIsa::Baseline) return baseline::kFloatTable;
  }
  refuse_level(isa);
}

const SimdKernels<c10::BFloat16>& bf16_table(CpuIsa isa) {
  require_usable(isa);
  if constexpr (is_compiled(CpuIsa::Amx)) {
    if (isa == CpuIsa::Amx) return amx::bf16_table();
  }
  if constexpr (is_compiled(CpuIsa::Avx512Bf16)) {
    if (isa == CpuIsa::Avx512Bf16) return avx512_bf16::kBf16Table;
  }
  if constexpr (is_compiled(CpuIsa::Avx512)) {
    if (isa == CpuIsa::Avx512) return avx512::kBf16Table;
  }
  if constexpr (is_compiled(CpuIsa::Avx2)) {
    if (isa == CpuIsa::Avx2) return avx2::kBf16Table;
  }
  if constexpr (is_compiled(CpuIsa::Baseline)) {
    if (isa == CpuIsa::Baseline) return baseline::kBf16Table;
  }
  refuse_level(isa);
}

}  // namespace

// Loops ask for the table of the best level at each row, so it is looked for once.
template <>
const SimdKernels<float>& simd_kernels<float>(CpuIsa isa) {
  static const CpuIsa best_isa = best_cpu_isa();
  static const SimdKernels<float>& best = float_table(best_isa);
  return isa == best_isa ? best : float_table(isa);
}

template <>
const SimdKernels<c10::BFloat16>& simd_kernels<c10::BFloat16>(CpuIsa isa) {
  static const CpuIsa best_isa = best_cpu_isa();
  static const SimdKernels<c10::BFloat16>& best = bf16_table(best_isa);
  return isa == best_isa ? best : bf16_table(isa);
}

}  // namespace convoy::kernels
