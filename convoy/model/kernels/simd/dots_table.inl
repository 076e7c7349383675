// SPDX-License-Identifier: Apache-2.0
//
// The tables of IntegerDots of one instruction set. The including file has set its level, its
// target and CONVOY_DOT_PRODUCTS, opened its namespace and named itself in CONVOY_DOTS_NAME.

namespace {
// clang-format off: the later includes use the first one.
#include "convoy/model/kernels/simd/vector16.inl"
#include "convoy/model/kernels/simd/panel_gemm.inl"
#include "convoy/model/kernels/simd/quantized_loops.inl"
#include "convoy/model/kernels/simd/block_sums.inl"
#include "convoy/model/kernels/simd/block_rounding.inl"
#include "convoy/model/kernels/simd/integer_dots.inl"
// clang-format on

template <class Element>
constexpr IntegerDots<Element> make_dots() {
  return {CONVOY_DOTS_NAME, round_to_bytes<Element, 8>, round_to_bytes<Element, 4>,
          multiply_rounded<8>, multiply_rounded<4>};
}
}  // namespace

extern const IntegerDots<float> kFloatDots;
extern const IntegerDots<c10::BFloat16> kBfloat16Dots;
const IntegerDots<float> kFloatDots = make_dots<float>();
const IntegerDots<c10::BFloat16> kBfloat16Dots = make_dots<c10::BFloat16>();
