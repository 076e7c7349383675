// SPDX-License-Identifier: Apache-2.0
//
// The time that a sweep still takes. Guesses cost what the workload foretells times a factor that
// is measured; descents cost their measured mean. Both go by the pace of the last seconds, of all
// workers of all runners together. If descents are left and too few have ended to give a pace, they
// are laid out over the workers, with the guesses beside them.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace convoy::sweep {

// Seconds of one core as foretold, and a number of descents.
struct SweepWork {
  double guess_seconds = 0;
  int64_t descents = 0;
};

// The work of workers now: the seconds that each has spent on its descents, and their number; 0 =
// none.
struct BusyWorker {
  double seconds = 0;
  int64_t descents = 0;
};

class WorkEstimate {
 public:
  // Adds measured times of this runner's workers: their microseconds against the predicted ones (0:
  // they ran descents).
  void measure(int64_t microseconds, int64_t expected_microseconds, int64_t descents);
  // Totals at a moment, on any monotonic clock.
  void note(double now_seconds, const SweepWork& done);
  // Negative = unknown: nothing was measured yet. `left` includes what the workers are at.
  double seconds_left(const SweepWork& left, const std::vector<BusyWorker>& workers) const;

 private:
  struct Sample {
    double seconds = 0;
    SweepWork done;
  };
  double core_seconds(const SweepWork& work) const;
  double descent_seconds() const;  // for one descent; 0 = unknown
  double laid_out_seconds(int64_t descents, const std::vector<BusyWorker>& workers) const;

  double measured_ = 0, expected_ = 0;  // seconds, of guesses
  double descent_seconds_ = 0;
  int64_t descents_ = 0;
  std::deque<Sample> samples_;
};

}  // namespace convoy::sweep
