// SPDX-License-Identifier: Apache-2.0
//
// How much dearer is a step that the host starts launch by launch than a recorded one? For a small
// model on a fast GPU several times, since the GPU waits for the host.
#pragma once

#include <cstdint>

namespace convoy::generate {

class StepCosts {
 public:
  // Seconds in which the host started a step launch by launch. The first steps do not count: they
  // compile kernels and take memory.
  void add_launches(double seconds) {
    constexpr int kFirstSteps = 3;
    if (++launched_steps_ > kFirstSteps) add(launches_, seconds);
  }
  // Seconds of a step from its plan to the reading of the one before. Between recorded ones that is
  // the time of the GPU.
  void add_step(double seconds, bool is_recorded) {
    if (is_recorded && last_is_recorded_) add(recorded_, seconds);
    last_is_recorded_ = is_recorded;
  }

  // Requests that should begin together (Scheduler::hold_admissions), of an engine of `max_rows`: a
  // sixteenth of them, where launches take twice as long as a recorded step. Their places are
  // empty meanwhile, at most the thirtieth part of all on average.
  int64_t fewest_admissions(int64_t max_rows) const {
    const bool host_bound = recorded_ > 0 && launches_ > 2 * recorded_;
    return host_bound ? (max_rows + 15) / 16 : 1;
  }

 private:
  static void add(double& mean, double seconds) {
    constexpr double kShare = 0.2;
    mean = mean == 0 ? seconds : (1 - kShare) * mean + kShare * seconds;
  }

  int64_t launched_steps_ = 0;
  double launches_ = 0, recorded_ = 0;
  bool last_is_recorded_ = false;
};

}  // namespace convoy::generate
