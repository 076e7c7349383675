// SPDX-License-Identifier: Apache-2.0
//
// Learning rates by step, exactly as the transformers Trainer sets them: with warm-up the first
// step runs at rate 0. cosine_by_epoch alone changes its rate between epochs only: it is torch's
// CosineAnnealingLR after a linear warm-up, stepped once an epoch. warmup_lr, warmup_decay_lr and
// warmup_cosine_lr are DeepSpeed's WarmupLR, WarmupDecayLR and WarmupCosineLR.
#pragma once

#include <cstdint>

#include "convoy/core/settings/train_settings.h"

namespace convoy::optim {

class LearningRateSchedule {
 public:
  // `total_steps`: optimizer steps of the whole run; `steps_per_epoch`: for cosine_by_epoch. Throws
  // ConfigError for a schedule that cannot be computed with these settings (polynomial whose end is
  // not below the peak).
  LearningRateSchedule(const settings::ScheduleSettings& settings, double learning_rate,
                       int64_t total_steps, int64_t steps_per_epoch = 1);

  // The rate of the update that follows `step` finished updates.
  double at(int64_t step) const;

  int64_t warmup_steps() const { return warmup_steps_; }

 private:
  enum class Kind {
    Linear,
    Cosine,
    CosineWithRestarts,
    Polynomial,
    Constant,
    ConstantWithWarmup,
    InverseSqrt,
    CosineWithMinLr,
    WarmupStableDecay,
    CosineByEpoch,
    WarmupLr,
    WarmupDecayLr,
    WarmupCosineLr,
  };

  static Kind parse_kind(const std::string& name);
  double factor(int64_t step) const;
  double decayed(int64_t step) const;
  double stable_decay(int64_t step) const;
  double polynomial(int64_t step) const;
  double cosine_by_epoch(int64_t step) const;
  bool is_of_deepspeed() const;
  double deepspeed(int64_t step) const;

  Kind kind_;
  double learning_rate_;
  int64_t total_steps_;
  int64_t warmup_steps_;
  int64_t decay_steps_;
  double num_cycles_;
  double lr_end_;
  double power_;
  double min_lr_ratio_;
  int64_t steps_per_epoch_;
  double warmup_epochs_;
  double min_lr_;
  settings::WarmupSettings warmup_;
};

}  // namespace convoy::optim
