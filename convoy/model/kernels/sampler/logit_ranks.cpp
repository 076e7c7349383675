// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/sampler/logit_ranks.h"

#include <algorithm>
#include <array>

namespace convoy::kernels::sampler {
namespace {

// Sorting this many ids costs no more than a pass over the row.
constexpr int64_t kFewIds = 128;
// After this many passes a range holds more than kFewIds ids only if very many logits are equal.
constexpr int kMostPasses = 6;

using Thresholds = std::array<float, kLogitThresholds>;

// Returns rising thresholds, strictly between `from` and `to` where there is room.
Thresholds between(float from, float to) {
  Thresholds made;
  for (int64_t index = 0; index < kLogitThresholds; ++index) {
    const double share = static_cast<double>(index + 1) / (kLogitThresholds + 1);
    made[index] = static_cast<float>(from + (static_cast<double>(to) - from) * share);
  }
  return made;
}

}  // namespace

LogitRanks::Range LogitRanks::narrow(const WeighedLogits& row, const Enough& enough) {
  const auto& loops = simd_kernels<float>();
  Range range{.from = row.floor, .below = std::numeric_limits<float>::infinity(), .before = {}};
  const float* logits = row.logits.data();
  const float* weights = row.weights.data();
  auto count = static_cast<int64_t>(row.logits.size());
  logits_.resize(count + kLogitSlack);
  weights_.resize(count + kLogitSlack);
  for (int pass = 0; pass < kMostPasses && count > kFewIds; ++pass) {
    const Thresholds thresholds = between(range.from, std::min(range.below, row.highest));
    std::array<LogitMass, kLogitThresholds> masses;
    loops.logit_mass(logits, weights, count, thresholds.data(), masses.data());
    const LogitMass before = range.before;
    for (int64_t index = kLogitThresholds - 1; index >= 0; --index) {
      const LogitMass mass{before.count + masses[index].count,
                           before.weight + masses[index].weight};
      if (mass.count > 0 && enough(mass)) {
        range.from = thresholds[index];
        break;
      }
      range.below = thresholds[index];
      range.before = mass;
    }
    count = loops.compact_logits(logits, weights, count, range.from, range.below, logits_.data(),
                                 weights_.data());
    logits = logits_.data();
    weights = weights_.data();
  }
  return range;
}

std::span<const int32_t> LogitRanks::ordered(const WeighedLogits& row, float from, float below) {
  found_.resize(row.logits.size() + kLogitSlack);
  const int64_t present = simd_kernels<float>().find_logits(
      row.logits.data(), static_cast<int64_t>(row.logits.size()), from, below, found_.data());
  std::sort(found_.begin(), found_.begin() + present, [&](int32_t a, int32_t b) {
    return row.logits[a] != row.logits[b] ? row.logits[a] > row.logits[b] : a < b;
  });
  return {found_.data(), static_cast<size_t>(present)};
}

LikeliestIds LogitRanks::shortest(const WeighedLogits& row, const Enough& enough,
                                  const LikeliestIds* most) {
  const Range range = narrow(row, enough);
  LogitMass prefix = range.before;
  // When no id lies in the range the result is all ids: no later id can make them enough.
  LikeliestIds ids;
  ids.count = prefix.count;
  ids.weight = prefix.weight;
  if (most != nullptr) ids = *most;
  for (const int32_t id : ordered(row, range.from, range.below)) {
    if (most != nullptr && !most->holds(row.logits[id], id)) break;
    prefix.weight += static_cast<double>(row.weights[id]);
    ids = {row.logits[id], id, ++prefix.count, prefix.weight};
    if (enough(prefix)) break;
  }
  return ids;
}

std::vector<int32_t> LogitRanks::in_order(const WeighedLogits& row, int64_t count) {
  if (count == 0) return {};
  const LikeliestIds wanted =
      shortest(row, [&](const LogitMass& mass) { return mass.count >= count; });
  const auto all =
      ordered(row, std::max(wanted.last_logit, row.floor), std::numeric_limits<float>::infinity());
  return {all.begin(), all.begin() + std::min(count, static_cast<int64_t>(all.size()))};
}

}  // namespace convoy::kernels::sampler
