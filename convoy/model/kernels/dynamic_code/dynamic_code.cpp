// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/dynamic_code/dynamic_code.h"

#include <algorithm>
#include <limits>

#include "convoy/core/base/error.h"

namespace convoy::kernels {
namespace {

std::array<float, 256> values_of(DynamicMap kind) {
  const at::Tensor map = dynamic_map(kind);
  std::array<float, 256> values;
  CONVOY_INVARIANT(map.numel() == 256, "a dynamic map has 256 values, found {}", map.numel());
  std::copy_n(map.const_data_ptr<float>(), values.size(), values.begin());
  return values;
}

// The largest x that lies no farther from `low` than from `high`, by distances in fp32.
float last_nearer_to(float low, float high) {
  float inside = low, outside = high;
  for (;;) {
    const float middle = inside + (outside - inside) / 2;
    if (middle <= inside || middle >= outside) break;
    (middle - low <= high - middle ? inside : outside) = middle;
  }
  return inside;
}

}  // namespace

const DynamicCode& DynamicCode::of(DynamicMap kind) {
  static const DynamicCode with_sign(DynamicMap::Signed);
  static const DynamicCode without_sign(DynamicMap::Unsigned);
  return kind == DynamicMap::Signed ? with_sign : without_sign;
}

DynamicCode::DynamicCode(DynamicMap kind)
    : values_(values_of(kind)), lowest_code_(size_t{1} << (32 - kBucketBits)) {
  for (size_t code = 0; code < 255; ++code)
    thresholds_[code] = last_nearer_to(values_[code], values_[code + 1]);
  thresholds_[255] = std::numeric_limits<float>::infinity();
  size_t code = 0;
  for (size_t bucket = 0; bucket < lowest_code_.size(); ++bucket) {
    lowest_code_[bucket] = static_cast<uint8_t>(code);
    const size_t before = code;
    while (order_of(thresholds_[code]) >> kBucketBits == bucket && code < 255) ++code;
    CONVOY_INVARIANT(code <= before + 1, "two thresholds of the dynamic map in one bucket");
  }
}

}  // namespace convoy::kernels
