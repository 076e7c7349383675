// SPDX-License-Identifier: Apache-2.0
//
// Learning rate at each step, as transformers' schedules give it: the first step of a warm-up runs at rate 0.
#pragma once

#include <cstdint>

#include "convoy/settings/train_settings.h"

namespace convoy::optim {

class Schedule {
 public:
  // Throws ConfigError when warm-up is longer than the run where the schedule cannot be computed.
  Schedule(const settings::ScheduleSettings& settings, double peak_lr, int64_t total_steps);

  double lr_at(int64_t step) const;  // step: optimizer steps already done
  int64_t warmup_steps() const { return warmup_steps_; }

 private:
  double factor_at(int64_t step) const;

  settings::ScheduleSettings settings_;
  double peak_lr_;
  int64_t total_steps_;
  int64_t warmup_steps_;
};

}  // namespace convoy::optim
