// SPDX-License-Identifier: Apache-2.0
//
// Measures how much longer a step takes when the host starts it launch by launch instead of as a
// recorded step. With a small model on a fast GPU it takes several times as long, because the GPU
// waits for the host.
#pragma once

#include <cstdint>

namespace convoy::generate {

class StepCosts {
 public:
  // `seconds`: the time in which the host started a step launch by launch. The first steps do not
  // count, because they compile kernels and allocate memory.
  void add_launches(double seconds) {
    constexpr int kFirstSteps = 3;
    if (++launched_steps_ > kFirstSteps) add(launches_, seconds);
  }
  // `seconds`: from the plan of a step until the tokens of the previous step are read. When both
  // steps are recorded, this is the time of the GPU.
  void add_step(double seconds, bool is_recorded) {
    if (is_recorded && last_is_recorded_) add(recorded_, seconds);
    last_is_recorded_ = is_recorded;
  }

  // Number of requests that should begin together (Scheduler::hold_admissions): a sixteenth of
  // `max_rows` when launches take more than twice as long as a recorded step, else 1. The rows that
  // wait for these requests are empty meanwhile: on average at most a thirtieth of all rows.
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
