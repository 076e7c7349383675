// SPDX-License-Identifier: Apache-2.0
//
// The dynamic 8-bit data type of bitsandbytes (arXiv 1511.04561, 2110.02861): 256 values whose
// exponent and fraction share the bits. Signed: -0.993 to 1 with 0 at code 127; unsigned: 0 to 1
// with 0 at code 0.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "convoy/model/kernels/bitsandbytes_weight/code_tables.h"

namespace convoy::kernels {

class DynamicCode {
 public:
  // Thread-safe.
  static const DynamicCode& of(DynamicMap kind);

  // Ascending.
  const std::array<float, 256>& values() const { return values_; }
  // thresholds()[c]: the largest float that is code c or lower. Infinity at 255.
  const std::array<float, 256>& thresholds() const { return thresholds_; }
  // The code with the value nearest to x in fp32; of two equally near codes the lower one. `x` is
  // not NaN.
  uint8_t nearest(float x) const {
    const uint8_t lowest = lowest_of_bucket(x);
    return static_cast<uint8_t>(lowest + (x > thresholds_[lowest] ? 1 : 0));
  }
  // Floats with the same first 17 bits as x have one of two codes. Returns the lower one.
  uint8_t lowest_of_bucket(float x) const { return lowest_code_[order_of(x) >> kBucketBits]; }

 private:
  static constexpr int kBucketBits = 15;  // 256 buckets for each power of two

  explicit DynamicCode(DynamicMap kind);
  // Ascends with x.
  static uint32_t order_of(float x) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, x);
    return bits ^ (bits >> 31 != 0 ? ~0u : 1u << 31);
  }

  std::array<float, 256> values_;
  std::array<float, 256> thresholds_;
  std::vector<uint8_t> lowest_code_;  // by bucket; a bucket holds one threshold at most
};

}  // namespace convoy::kernels
