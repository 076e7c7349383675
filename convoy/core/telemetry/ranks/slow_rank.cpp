// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/ranks/slow_rank.h"

#include <fmt/format.h>

#include <algorithm>

namespace convoy::telemetry {
namespace {

// Shorter steps are not compared, because a collective alone takes as long.
constexpr double kShortestStepSeconds = 1e-3;

double middle(std::vector<double> values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  return *half;
}

}  // namespace

std::string SlowRankWatch::step(double seconds, const std::vector<double>& rank_wait_seconds) {
  if (rank_wait_seconds.size() < 2 || ++steps_ == 0) return "";
  waited_seconds_.resize(rank_wait_seconds.size(), 0);
  seconds_ += seconds;
  for (size_t rank = 0; rank < rank_wait_seconds.size(); ++rank)
    waited_seconds_[rank] += std::min(seconds, rank_wait_seconds[rank]);  // no waits of evaluations
  if (steps_ < kSteps) return "";
  std::string sentence = judge();
  steps_ = 0;
  seconds_ = 0;
  waited_seconds_.assign(waited_seconds_.size(), 0);
  return sentence;
}

std::string SlowRankWatch::judge() {
  const auto steps = static_cast<double>(steps_);
  if (seconds_ / steps < kShortestStepSeconds) return "";
  const auto least = std::min_element(waited_seconds_.begin(), waited_seconds_.end());
  const auto rank = least - waited_seconds_.begin();
  const double own = (seconds_ - *least) / steps;
  std::vector<double> of_others;
  for (auto waited = waited_seconds_.begin(); waited != waited_seconds_.end(); ++waited)
    if (waited != least) of_others.push_back((seconds_ - *waited) / steps);
  const double others = middle(of_others);
  if (own < kTimesSlower * others) {
    named_ = -1;
    return "";
  }
  if (named_ == rank) return "";
  named_ = rank;
  return fmt::format(
      "rank {} is slow: over {} steps it computed for {:.3g} s a step, the others for {:.3g} s, "
      "and "
      "they waited {:.3g} s for it",
      rank, steps_, own, others, own - others);
}

}  // namespace convoy::telemetry
