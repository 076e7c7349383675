// SPDX-License-Identifier: Apache-2.0
//
// The peak memory of a training step as a line over its tokens, through measured peaks.
#pragma once

#include <cstdint>
#include <vector>

namespace convoy::sizing {

struct MeasuredPeak {
  int64_t tokens = 0;
  int64_t bytes = 0;
};

class PeakLine {
 public:
  // `bytes_per_token`: by formula, used until there are two points.
  explicit PeakLine(double bytes_per_token) : formula_(bytes_per_token) {}

  // The line continues from the peak that was added last.
  void add(MeasuredPeak peak) { peaks_.push_back(peak); }
  const std::vector<MeasuredPeak>& peaks() const { return peaks_; }

  // Continues from the last peak. The slope comes from that peak and the last peak with at most
  // half as many tokens: between nearer peaks the slope would be noise.
  int64_t predict(int64_t tokens) const;
  // The number of tokens up to which the line may be trusted: four times the measured number, or,
  // with one point, 1024.
  int64_t reach_tokens() const;
  // The largest number of tokens, up to reach_tokens(), whose peak stays within `allowed_bytes` by
  // the line, or by the formula where it is steeper: below some size the peak does not grow, and
  // the line is flat.
  int64_t tokens_within(int64_t allowed_bytes) const;
  // The same as tokens_within(), if each further token may cost a seventh more than the line says;
  // with one point, half more.
  int64_t safe_tokens(int64_t allowed_bytes) const;
  // The largest distance of a point from the line through the first and the last point, as a share
  // of the last point's bytes.
  double curvature() const;

 private:
  double slope() const;
  int64_t tokens_at(double bytes_per_token, int64_t allowed_bytes) const;

  double formula_;
  std::vector<MeasuredPeak> peaks_;
};

}  // namespace convoy::sizing
