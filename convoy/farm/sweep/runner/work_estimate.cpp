// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/work_estimate.h"

#include <algorithm>

namespace convoy::sweep {
namespace {

constexpr double kWindowSeconds = 30;
constexpr double kLeastPaceSeconds = 0.5;  // over a shorter time, a pace is random

}  // namespace

void WorkEstimate::measure(int64_t microseconds, int64_t expected_microseconds, int64_t descents) {
  const double seconds = static_cast<double>(microseconds) * 1e-6;
  if (expected_microseconds > 0) {
    measured_ += seconds;
    expected_ += static_cast<double>(expected_microseconds) * 1e-6;
  } else if (descents > 0) {
    descent_seconds_ += seconds;
    descents_ += descents;
  }
}

void WorkEstimate::note(double now_seconds, const SweepWork& done) {
  if (!samples_.empty() && now_seconds - samples_.back().seconds < kLeastPaceSeconds) {
    if (samples_.size() > 1) samples_.back().done = done;
    return;
  }
  samples_.push_back({now_seconds, done});
  while (samples_.size() > 2 && now_seconds - samples_[1].seconds > kWindowSeconds)
    samples_.pop_front();
}

double WorkEstimate::descent_seconds() const {
  return descents_ > 0 ? descent_seconds_ / static_cast<double>(descents_) : 0;
}

double WorkEstimate::core_seconds(const SweepWork& work) const {
  const double factor = expected_ > 0 ? measured_ / expected_ : 1;
  return work.guess_seconds * factor + static_cast<double>(work.descents) * descent_seconds();
}

// Assigns the descents: each takes the mean time, and goes to the worker that is free first.
double WorkEstimate::laid_out_seconds(int64_t descents,
                                      const std::vector<BusyWorker>& workers) const {
  const double each = descent_seconds();
  std::vector<double> free;  // seconds until a worker is free, by worker
  for (const BusyWorker& worker : workers) {
    free.push_back(std::max(0.0, static_cast<double>(worker.descents) * each - worker.seconds));
    descents -= worker.descents;
  }
  std::sort(free.begin(), free.end());
  const auto waiting = static_cast<size_t>(std::max<int64_t>(0, descents));
  const double rounds = static_cast<double>(waiting / free.size()) * each;
  const size_t rest = waiting % free.size();
  // The current descents of one worker may take longer than all remaining work.
  return std::max(free.back(), rounds + (rest > 0 ? free[rest - 1] + each : free.back()));
}

double WorkEstimate::seconds_left(const SweepWork& left,
                                  const std::vector<BusyWorker>& workers) const {
  constexpr double kLeastInWindow = 5;
  if (left.descents > 0 && descent_seconds() * kLeastInWindow > kWindowSeconds &&
      !workers.empty()) {
    // Workers that have no descent left compute guesses in the meantime.
    double spent = 0;
    for (const BusyWorker& worker : workers)
      spent += std::min(worker.seconds, static_cast<double>(worker.descents) * descent_seconds());
    const double all = core_seconds(left) - spent;
    return std::max(laid_out_seconds(left.descents, workers),
                    all / static_cast<double>(workers.size()));
  }
  if (samples_.size() < 2) return -1;
  const Sample& first = samples_.front();
  const Sample& last = samples_.back();
  const double done = core_seconds({last.done.guess_seconds - first.done.guess_seconds,
                                    last.done.descents - first.done.descents});
  if (done <= 0) return -1;
  return core_seconds(left) * (last.seconds - first.seconds) / done;
}

}  // namespace convoy::sweep
