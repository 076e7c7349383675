// SPDX-License-Identifier: Apache-2.0
//
// Groups gradients into buckets that are sent together. A pure function of its arguments, hence
// equal on every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace convoy::parallel {

// `ready_order`: every index of `gradient_bytes` once, as backward makes the gradients ready.
// Returns the indices of each bucket, in sending order. A bucket closes once it holds its cap, so
// one may overshoot by a gradient. The first is capped at 1 MiB: it leaves early in backward
// (launch.md 8.2).
std::vector<std::vector<size_t>> plan_buckets(const std::vector<size_t>& ready_order,
                                              const std::vector<int64_t>& gradient_bytes,
                                              int64_t cap_bytes);

}  // namespace convoy::parallel
