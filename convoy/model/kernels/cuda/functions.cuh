// SPDX-License-Identifier: Apache-2.0
//
// Functions of the GPU's own instructions. Errors as NVIDIA's PTX manual bounds them.
#pragma once

#include "convoy/machine/nvidia/device_functions.cuh"

namespace convoy::kernels::gpu {

// 2^x with a relative error of 2^-22; 0 or infinity where x is out of range.
CONVOY_DEVICE float power_of_two(float x) { return __nvvm_ex2_approx_f(x); }

// e^x. The relative error is 2^-22 plus |x| 2^-24 from rounding the exponent: 1e-6 where the result
// is 1e-4. Gives 0 or infinity where x is out of range.
CONVOY_DEVICE float exponential(float x) {
  constexpr float kLog2OfE = 1.44269504f;
  return power_of_two(x * kLog2OfE);
}

// The natural logarithm. The absolute error is 2^-22 for x near 1, elsewhere the relative error is
// 2^-22.
CONVOY_DEVICE float logarithm(float x) {
  constexpr float kLogOf2 = 0.693147181f;
  return __nvvm_lg2_approx_f(x) * kLogOf2;
}

// The error is 2 units in the last place. Gives 0 for divisors beyond 2^126.
CONVOY_DEVICE float quotient(float dividend, float divisor) {
  return __nvvm_div_approx_f(dividend, divisor);
}

CONVOY_DEVICE float inverse_root(float x) { return __nvvm_div_rn_f(1.0f, __nvvm_sqrt_rn_f(x)); }

}  // namespace convoy::kernels::gpu
