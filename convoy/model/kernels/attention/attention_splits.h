// SPDX-License-Identifier: Apache-2.0
//
// The order in which a query sums over its keys, in training (packed_attention) and in generation
// (paged_attention): split by split. A split begins at a multiple of kSplitKeys, whatever is
// computed beside it, and has softmax sums of its own, which are merged into the sums of earlier
// splits in order. So a token has the same bits in training and in generation, and no bit depends
// on the batch, on how a row is cut, or on which thread computed a split.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels::attention {

inline constexpr int64_t kSplitKeys = 512;
// The log_sum_exp of a query that sees no key of a split.
inline constexpr float kNothing = -std::numeric_limits<float>::infinity();

// The results of queries for one split, by row of a matrix of queries.
struct SplitSums {
  std::vector<float> sums;  // sums of weights times values, [rows, padded features]
  std::vector<float> totals;
  std::vector<float> log_sum_exp;

  void make(int64_t rows, int64_t padded_features) {
    sums.resize(rows * padded_features);
    totals.resize(rows);
    log_sum_exp.resize(rows);
  }
};

// The merged results of the splits so far: the output of a row is sums / totals.
struct MergedSums {
  std::vector<float> sums;
  std::vector<float> totals;
  std::vector<float> largest;  // largest log_sum_exp of the splits

  void restart(int64_t rows, int64_t padded_features) {
    sums.assign(rows * padded_features, 0.0f);
    totals.assign(rows, 0.0f);
    largest.assign(rows, kNothing);
  }
  void add(const SplitSums& split, int64_t rows, int64_t padded_features) {
    for (int64_t row = 0; row < rows; ++row) {
      if (split.log_sum_exp[row] == kNothing) continue;
      const float highest = std::max(largest[row], split.log_sum_exp[row]);
      const float keep = largest[row] == kNothing ? 0.0f : std::exp(largest[row] - highest);
      const float share = std::exp(split.log_sum_exp[row] - highest);
      const float factor = share * (1.0f / split.totals[row]);
      float* to = sums.data() + row * padded_features;
      const float* from = split.sums.data() + row * padded_features;
      simd_kernels<float>().blend_rows(from, factor, to, keep, padded_features);
      totals[row] = totals[row] * keep + share;
      largest[row] = highest;
    }
  }
  // log(sum exp) of the row's scores over all splits.
  float log_sum_exp(int64_t row) const { return largest[row] + std::log(totals[row]); }
};

}  // namespace convoy::kernels::attention
