// SPDX-License-Identifier: Apache-2.0
//
// The most likely ids of a row, without sorting it: passes over the row narrow a range of logits
// until few ids lie in it, and only those are put in order. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels::sampler {

// Logits of one row and exp of their distance from the highest; none is NaN.
struct WeighedLogits {
  std::span<const float> logits;
  std::span<const float> weights;
  float highest = 0;
  // Finite; ids with a lower logit do not exist or have no weight.
  float floor = 0;
};

// The ids from the most likely one down to `last_id`; equal logits are ordered by rising id.
struct LikeliestIds {
  float last_logit = -std::numeric_limits<float>::infinity();
  int64_t last_id = std::numeric_limits<int64_t>::max();
  int64_t count = 0;
  double weight = 0;

  bool holds(float logit, int64_t id) const {
    return logit > last_logit || (logit == last_logit && id <= last_id);
  }
};

class LogitRanks {
 public:
  // Returns the shortest prefix of the ids by likelihood for which `enough` is true; `enough` stays
  // true for longer prefixes. The prefix has at least one id. If no prefix is enough, it has all
  // ids of `most`, or without `most` all ids with a weight.
  using Enough = std::function<bool(const LogitMass&)>;
  LikeliestIds shortest(const WeighedLogits& row, const Enough& enough,
                        const LikeliestIds* most = nullptr);

  // At most `count` ids by falling likelihood, without ids that have no weight.
  std::vector<int32_t> in_order(const WeighedLogits& row, int64_t count);

 private:
  struct Range {
    float from = 0;    // the prefix down to this logit is enough, or this is the floor
    float below = 0;   // the prefix down to this logit is not enough
    LogitMass before;  // mass of the logits that are not below `below`
  };
  Range narrow(const WeighedLogits& row, const Enough& enough);
  // Ids with from <= logit < below, by falling likelihood; valid until the next call.
  std::span<const int32_t> ordered(const WeighedLogits& row, float from, float below);

  // Buffers that are used again for each row.
  std::vector<int32_t> found_;
  std::vector<float> logits_;  // logits of the range
  std::vector<float> weights_;
};

}  // namespace convoy::kernels::sampler
