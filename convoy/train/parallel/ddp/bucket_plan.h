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
// Returns the indices of each bucket, in sending order. A bucket closes once it has reached its
// cap, so a bucket may exceed the cap by a gradient. The first bucket has a cap of 1 MiB, so it is
// sent early in backward.
std::vector<std::vector<size_t>> plan_buckets(const std::vector<size_t>& ready_order,
                                              const std::vector<int64_t>& gradient_bytes,
                                              int64_t cap_bytes);

}  // namespace convoy::parallel
