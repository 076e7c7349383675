// SPDX-License-Identifier: Apache-2.0
//
// The numbers that codes of bitsandbytes stand for.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

namespace convoy::kernels {

using NibbleTable = std::array<float, 16>;

// Quantiles of the normal distribution (arXiv 2305.14314), ascending.
const NibbleTable& nf4_table();
// Indexed by bit pattern: a sign, two bits of exponent, one bit of mantissa. Numbers are relative
// to the largest one, which is 1.
const NibbleTable& fp4_table();

// The value of code 1 in 8 bits, in units of absmax: bitsandbytes' 1 / 127.
inline constexpr double kInt8Step = 7.874015718698502e-3;

// fp32 [256], ascending: seven decades, of which larger ones are divided more finely (arXiv
// 1511.04561).
enum class DynamicMap { Signed, Unsigned };
at::Tensor dynamic_map(DynamicMap kind);

}  // namespace convoy::kernels
