// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/simd/simd_kernels.h"

#include "convoy/core/base/error.h"

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
}

}  // namespace

template <>
const SimdKernels<float>& simd_kernels<float>(CpuIsa isa) {
  require_usable(isa);
  switch (isa) {
    case CpuIsa::Baseline:
      break;
    case CpuIsa::Avx2:
      return avx2::kFloatTable;
    case CpuIsa::Avx512:
      return avx512::kFloatTable;
    case CpuIsa::Avx512Bf16:
    case CpuIsa::Amx:
      return avx512_bf16::kFloatTable;
  }
  return baseline::kFloatTable;
}

template <>
const SimdKernels<c10::BFloat16>& simd_kernels<c10::BFloat16>(CpuIsa isa) {
  require_usable(isa);
  switch (isa) {
    case CpuIsa::Baseline:
      break;
    case CpuIsa::Avx2:
      return avx2::kBf16Table;
    case CpuIsa::Avx512:
      return avx512::kBf16Table;
    case CpuIsa::Avx512Bf16:
      return avx512_bf16::kBf16Table;
    case CpuIsa::Amx:
      return amx::bf16_table();
  }
  return baseline::kBf16Table;
}

}  // namespace convoy::kernels
