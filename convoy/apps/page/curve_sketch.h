// SPDX-License-Identifier: Apache-2.0
//
// A curve of any length in bounded memory: means, lows and highs of neighbouring points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace convoy::page {

struct CurveBucket {
  int64_t step = 0;  // of its last point
  int64_t points = 0;
  double sum = 0;
  double low = 0;
  double high = 0;
};

// Points come in the order of their steps. Buckets hold equally many points but the last; when
// there are kMostBuckets of them, neighbours are joined. Values that are not finite are gaps,
// buckets without points; many of them are forgotten.
class CurveSketch {
 public:
  static constexpr size_t kMostBuckets = 2048;

  void add(int64_t step, double value);
  // Forgets what lies after `step`: a resumed run goes on from there. A bucket across it is
  // forgotten whole.
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
