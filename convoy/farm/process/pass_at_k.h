// SPDX-License-Identifier: Apache-2.0
//
// pass@k: the probability that at least one of k samples of a problem is right. Thread-safe.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

namespace convoy::process {

// The unbiased estimate from `samples` samples of which `right` are right: 1 - C(samples - right,
// k) / C(samples, k). From 0 to 1. 1 <= k <= samples, 0 <= right <= samples.
// Source: Chen et al. 2021 (arXiv:2107.03374), equation 1.
double pass_at_k(int64_t samples, int64_t right, int64_t k);

// {"1": ..., "2": ..., "4": ...}: every power of two up to `samples`, and `samples`; null if there
// are no samples.
nlohmann::ordered_json pass_at_powers(int64_t samples, int64_t right);

}  // namespace convoy::process
