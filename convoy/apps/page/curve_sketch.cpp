// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/page/curve_sketch.h"

#include <algorithm>
#include <cmath>

namespace convoy::page {

void CurveSketch::add(int64_t step, double value) {
  last_ = value;
  if (!std::isfinite(value)) {
    if (buckets_.empty() || buckets_.back().points > 0) buckets_.push_back({.step = step});
  } else if (!buckets_.empty() && buckets_.back().points > 0 &&
             buckets_.back().points < points_per_bucket_) {
    CurveBucket& bucket = buckets_.back();
    bucket.step = step;
    ++bucket.points;
    bucket.sum += value;
    bucket.low = std::min(bucket.low, value);
    bucket.high = std::max(bucket.high, value);
  } else {
    buckets_.push_back({step, 1, value, value, value});
  }
  if (buckets_.size() >= kMostBuckets) make_room();
}

void CurveSketch::cut_after(int64_t step) {
  while (!buckets_.empty() && buckets_.back().step > step) buckets_.pop_back();
}

void CurveSketch::make_room() {
  const auto is_gap = [](const CurveBucket& bucket) { return bucket.points == 0; };
  const auto gaps = static_cast<size_t>(std::count_if(buckets_.begin(), buckets_.end(), is_gap));
  // Buckets are not joined across a gap, so many gaps would leave no room.
  if (gaps > kMostBuckets / 4) {
    std::erase_if(buckets_, is_gap);
    return;
  }
  points_per_bucket_ *= 2;
  std::vector<CurveBucket> joined;
  joined.reserve(buckets_.size());
  for (const CurveBucket& bucket : buckets_) {
    const bool fits = !joined.empty() && !is_gap(joined.back()) && !is_gap(bucket) &&
                      joined.back().points + bucket.points <= points_per_bucket_;
    if (!fits) {
      joined.push_back(bucket);
      continue;
    }
    CurveBucket& before = joined.back();
    before.step = bucket.step;
    before.points += bucket.points;
    before.sum += bucket.sum;
    before.low = std::min(before.low, bucket.low);
    before.high = std::max(before.high, bucket.high);
  }
  buckets_ = std::move(joined);
}

}  // namespace convoy::page
