// SPDX-License-Identifier: Apache-2.0
//
// Estimates the time that a sweep still takes. A guess costs the workload's prediction times a
// measured factor; a descent costs the measured mean. The estimate uses the pace of all workers of
// all runners together in the last seconds. If descents are left and too few have ended to give a
// pace, the estimate assigns the descents to the workers, and the guesses to the time that is left.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace convoy::sweep {

// An amount of work: predicted seconds of guesses on one core, and a number of descents.
struct SweepWork {
  double guess_seconds = 0;
  int64_t descents = 0;
};

// The current work of a worker: the seconds that it has spent on its descents so far, and their
// number; 0 = none.
struct BusyWorker {
  double seconds = 0;
  int64_t descents = 0;
};

class WorkEstimate {
 public:
  // Adds measured times of this runner's workers, together with the predicted times of the same
  // work (0: it was descents).
  void measure(int64_t microseconds, int64_t expected_microseconds, int64_t descents);
  // Notes the total work that is done at a moment, on any monotonic clock.
  void note(double now_seconds, const SweepWork& done);
  // Returns a negative number if nothing was measured yet. `left` includes the work that workers
  // are computing now.
  double seconds_left(const SweepWork& left, const std::vector<BusyWorker>& workers) const;

 private:
  struct Sample {
    double seconds = 0;
    SweepWork done;
  };
  double core_seconds(const SweepWork& work) const;
  double descent_seconds() const;  // seconds for one descent; 0 = unknown
  double laid_out_seconds(int64_t descents, const std::vector<BusyWorker>& workers) const;

  double measured_ = 0, expected_ = 0;  // seconds of guesses
  double descent_seconds_ = 0;
  int64_t descents_ = 0;
  std::deque<Sample> samples_;
};

}  // namespace convoy::sweep
