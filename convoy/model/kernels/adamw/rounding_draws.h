// SPDX-License-Identifier: Apache-2.0
//
// Random rounding to bf16: upwards with the probability that makes the mean of the result equal to
// the value. The same on every device.
#pragma once

#include "convoy/model/kernels/counter_draws/counter_hash.h"

namespace convoy::kernels {

// The draws of an element: one word has 16 bits for each moment, another word has the bits for its
// value.
constexpr CounterKey value_key(CounterKey key) { return {key.high, ~key.low}; }

// `bits` of an fp32 number; `draw` in 0 ... 65535. Infinity and NaN stay what they are.
constexpr uint32_t drawn_bf16(uint32_t bits, uint32_t draw) {
  constexpr uint32_t kExponent = 0x7f800000u;
  const bool is_number = (bits & kExponent) != kExponent;
  return (is_number ? bits + draw : bits) >> 16;
}

}  // namespace convoy::kernels
