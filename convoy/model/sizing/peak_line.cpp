// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/sizing/peak_line.h"

#include <algorithm>
#include <cmath>

#include "convoy/core/base/error.h"

namespace convoy::sizing {
namespace {

constexpr double kDearer = 1.15;
constexpr double kDearerThanFormula = 1.5;
constexpr int64_t kMostGrowth = 4;
constexpr int64_t kFirstTokens = 1024;

double slope_between(const MeasuredPeak& low, const MeasuredPeak& high) {
  return static_cast<double>(high.bytes - low.bytes) /
         static_cast<double>(std::max<int64_t>(high.tokens - low.tokens, 1));
}

}  // namespace

double PeakLine::slope() const {
  CONVOY_INVARIANT(!peaks_.empty(), "no peak was measured");
  const MeasuredPeak& last = peaks_.back();
  const MeasuredPeak* low = nullptr;
  for (const MeasuredPeak& peak : peaks_)
    if (2 * peak.tokens <= last.tokens) low = &peak;
  return low == nullptr ? formula_ : std::max(slope_between(*low, last), 1.0);
}

int64_t PeakLine::predict(int64_t tokens) const {
  const MeasuredPeak& last = peaks_.back();
  return last.bytes +
         std::llround(slope() * static_cast<double>(std::max<int64_t>(tokens - last.tokens, 0)));
}

int64_t PeakLine::tokens_at(double bytes_per_token, int64_t allowed_bytes) const {
  const MeasuredPeak& last = peaks_.back();
  const double more = static_cast<double>(allowed_bytes - last.bytes) / bytes_per_token;
  const double most = static_cast<double>(last.tokens) + std::min(more, 1e15);
  return std::clamp<int64_t>(static_cast<int64_t>(most), 0, reach_tokens());
}

int64_t PeakLine::tokens_within(int64_t allowed_bytes) const {
  return tokens_at(std::max(slope(), formula_), allowed_bytes);
}

int64_t PeakLine::safe_tokens(int64_t allowed_bytes) const {
  // A batch that was too large exceeds the limit by fewer tokens when a token costs more.
  if (peaks_.back().bytes > allowed_bytes) return tokens_at(slope() / kDearer, allowed_bytes);
  const double dearer = peaks_.size() < 2 ? kDearerThanFormula : kDearer;
  return tokens_at(dearer * std::max(slope(), formula_), allowed_bytes);
}

int64_t PeakLine::reach_tokens() const {
  const int64_t known = kMostGrowth * peaks_.back().tokens;
  return peaks_.size() < 2 ? std::max(known, kFirstTokens) : known;
}

double PeakLine::curvature() const {
  if (peaks_.size() < 3) return 0;
  const MeasuredPeak& first = peaks_.front();
  const MeasuredPeak& last = peaks_.back();
  const double per_token = slope_between(first, last);
  double most = 0;
  for (const MeasuredPeak& peak : peaks_) {
    const double straight = static_cast<double>(first.bytes) +
                            per_token * static_cast<double>(peak.tokens - first.tokens);
    most = std::max(most, std::abs(static_cast<double>(peak.bytes) - straight));
  }
  return most / static_cast<double>(std::max<int64_t>(last.bytes, 1));
}

}  // namespace convoy::sizing
