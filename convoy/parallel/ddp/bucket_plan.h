// SPDX-License-Identifier: Apache-2.0
//
// Which gradients travel together. A pure function of the sizes, hence equal on every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace convoy::parallel {

// Indices of parameters per bucket, in sending order: from the last parameter to the first, as backward makes them ready. A
// bucket closes once it holds its cap, so one may overshoot by a parameter. The first is capped at 1 MiB: it leaves early in
// backward (launch.md 8.2).
std::vector<std::vector<size_t>> plan_buckets(const std::vector<int64_t>& gradient_bytes,
                                              int64_t cap_bytes);

}  // namespace convoy::parallel
