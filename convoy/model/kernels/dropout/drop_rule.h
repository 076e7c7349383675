// SPDX-License-Identifier: Apache-2.0
//
// Decides which elements dropout drops: the same function for CPUs and GPUs.
#pragma once

#include <stdint.h>

#include "convoy/model/kernels/counter_draws/counter_hash.h"

namespace convoy::kernels {

// Element i is dropped where drop_hash(rule, i) < dropped_below.
struct DropRule {
  uint32_t key_low = 0;
  uint32_t key_high = 0;
  uint32_t dropped_below = 0;
  float scale = 1;  // multiplies the kept elements
};

constexpr uint32_t drop_hash(const DropRule& rule, uint32_t low, uint32_t high) {
  return counter_hash({rule.key_low, rule.key_high}, low, high);
}

}  // namespace convoy::kernels
