// SPDX-License-Identifier: Apache-2.0
//
// A curve of any length in bounded memory: means, lows and highs of neighbouring points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace convoy::page {

struct CurveBucket {
  int64_t step = 0;  // step of its last point
  int64_t points = 0;
  double sum = 0;
  double low = 0;
  double high = 0;
};

// Points arrive in the order of their steps. All buckets but the last hold the same number of
// points; when kMostBuckets is reached, neighbours are joined. Non-finite values are gaps (buckets
// without points); when there are too many gaps, they are dropped.
class CurveSketch {
 public:
  static constexpr size_t kMostBuckets = 2048;

  void add(int64_t step, double value);
  // Drops the points after `step`, where a resumed run continues. Drops a bucket entirely when it
  // reaches beyond `step`.
  void cut_after(int64_t step);

  const std::vector<CurveBucket>& buckets() const { return buckets_; }
  double last() const { return last_; }

 private:
  void make_room();

  std::vector<CurveBucket> buckets_;
  int64_t points_per_bucket_ = 1;
  double last_ = 0;
};

}  // namespace convoy::page
