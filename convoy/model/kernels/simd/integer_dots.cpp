// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/simd/integer_dots.h"

#include "convoy/model/kernels/simd/compiled_levels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace convoy::kernels {

#define CONVOY_DOT_TABLES(isa)                           \
  namespace isa {                                        \
  extern const IntegerDots<float> kFloatDots;            \
  extern const IntegerDots<c10::BFloat16> kBfloat16Dots; \
  }
CONVOY_DOT_TABLES(dots_baseline)
CONVOY_DOT_TABLES(dots_avx2)
CONVOY_DOT_TABLES(dots_avx2_vnni)
CONVOY_DOT_TABLES(dots_avx512)
CONVOY_DOT_TABLES(dots_avx512_vnni)
#undef CONVOY_DOT_TABLES

namespace {

#if defined(__x86_64__)
bool has_vnni_of_avx512() { return __builtin_cpu_supports("avx512vnni"); }
// Read from cpuid, because compilers learnt the name of this feature late.
bool has_vnni_of_avx2() {
  constexpr unsigned kAvxVnni = 1u << 4;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & kAvxVnni) != 0;
}
#else
bool has_vnni_of_avx512() { return false; }
bool has_vnni_of_avx2() { return false; }
#endif

template <class Element>
const IntegerDots<Element>* chosen(const IntegerDots<float>& floats,
                                   const IntegerDots<c10::BFloat16>& halves) {
  if constexpr (std::is_same_v<Element, float>)
    return &floats;
  else
    return &halves;
}

}  // namespace

template <class Element>
std::vector<const IntegerDots<Element>*> usable_integer_dots() {
  const CpuIsa best = best_cpu_isa();
  std::vector<const IntegerDots<Element>*> usable;
  const auto add = [&](bool can_run, const IntegerDots<float>& floats,
                       const IntegerDots<c10::BFloat16>& halves) {
    if (can_run) usable.push_back(chosen<Element>(floats, halves));
  };
  const bool avx2 = best >= CpuIsa::Avx2;
  const bool avx512 = best >= CpuIsa::Avx512;
  if constexpr (is_compiled(CpuIsa::Baseline))
    add(true, dots_baseline::kFloatDots, dots_baseline::kBfloat16Dots);
  if constexpr (is_compiled(CpuIsa::Avx2)) {
    add(avx2, dots_avx2::kFloatDots, dots_avx2::kBfloat16Dots);
    add(avx2 && has_vnni_of_avx2(), dots_avx2_vnni::kFloatDots, dots_avx2_vnni::kBfloat16Dots);
  }
  if constexpr (is_compiled(CpuIsa::Avx512) || is_compiled(CpuIsa::Avx512Bf16)) {
    add(avx512, dots_avx512::kFloatDots, dots_avx512::kBfloat16Dots);
    add(avx512 && has_vnni_of_avx512(), dots_avx512_vnni::kFloatDots,
        dots_avx512_vnni::kBfloat16Dots);
  }
  return usable;
}

template <class Element>
const IntegerDots<Element>& integer_dots() {
  static const IntegerDots<Element>& fastest = *usable_integer_dots<Element>().back();
  return fastest;
}

template std::vector<const IntegerDots<float>*> usable_integer_dots();
template std::vector<const IntegerDots<c10::BFloat16>*> usable_integer_dots();
template const IntegerDots<float>& integer_dots();
template const IntegerDots<c10::BFloat16>& integer_dots();

}  // namespace convoy::kernels
