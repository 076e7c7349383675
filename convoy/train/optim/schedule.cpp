// SPDX-License-Identifier: Apache-2.0
//
// The formulas of transformers/optimization.py (5.x) and of deepspeed/runtime/lr_schedules.py
// (0.19), in double.
#include "convoy/train/optim/schedule.h"

#include <numbers>

#include "convoy/core/base/error.h"

namespace convoy::optim {
namespace {

int64_t resolve_warmup(const settings::ScheduleSettings& settings, int64_t total_steps) {
  const double total = static_cast<double>(total_steps);
  if (settings.warmup_steps >= 1) return static_cast<int64_t>(settings.warmup_steps);
  const double ratio = settings.warmup_steps > 0 ? settings.warmup_steps : settings.warmup_ratio;
  return static_cast<int64_t>(std::ceil(total * ratio));
}

double at_least_one(int64_t steps) { return static_cast<double>(std::max<int64_t>(1, steps)); }

}  // namespace

LearningRateSchedule::Kind LearningRateSchedule::parse_kind(const std::string& name) {
  static const std::map<std::string, Kind> kinds{
      {"linear", Kind::Linear},
      {"cosine", Kind::Cosine},
      {"cosine_with_restarts", Kind::CosineWithRestarts},
      {"polynomial", Kind::Polynomial},
      {"constant", Kind::Constant},
      {"constant_with_warmup", Kind::ConstantWithWarmup},
      {"inverse_sqrt", Kind::InverseSqrt},
      {"cosine_with_min_lr", Kind::CosineWithMinLr},
      {"warmup_stable_decay", Kind::WarmupStableDecay},
      {"cosine_by_epoch", Kind::CosineByEpoch},
      {"warmup_lr", Kind::WarmupLr},
      {"warmup_decay_lr", Kind::WarmupDecayLr},
      {"warmup_cosine_lr", Kind::WarmupCosineLr},
  };
  const auto found = kinds.find(name);
  if (found == kinds.end())
    throw ConfigError(fmt::format("unknown lr_scheduler_type {}", name),
                      {.key = "train.lr_scheduler_type",
                       .hint = "such as cosine or linear; docs/reference/config.md lists them"});
  return found->second;
}

LearningRateSchedule::LearningRateSchedule(const settings::ScheduleSettings& settings,
                                           double learning_rate, int64_t total_steps,
                                           int64_t steps_per_epoch)
    : kind_(parse_kind(settings.lr_scheduler_type)),
      learning_rate_(learning_rate),
      total_steps_(settings.warmup.schedule_steps > 0 ? settings.warmup.schedule_steps
                                                      : total_steps),
      warmup_steps_(resolve_warmup(settings, total_steps_)),
      decay_steps_(static_cast<int64_t>(
          std::ceil(static_cast<double>(total_steps_) * settings.decay_ratio))),
      num_cycles_(settings.num_cycles),
      lr_end_(settings.lr_end),
      power_(settings.power),
      min_lr_ratio_(settings.min_lr_ratio),
      steps_per_epoch_(steps_per_epoch),
      warmup_epochs_(settings.warmup_epochs),
      min_lr_(settings.min_lr),
      warmup_(settings.warmup) {
  // With one step of warm-up, log(1) = 0 would be a divisor.
  if (is_of_deepspeed()) warmup_steps_ = std::max<int64_t>(2, warmup_steps_);
  if (kind_ == Kind::CosineByEpoch)
    warmup_steps_ = std::llround(warmup_epochs_ * static_cast<double>(steps_per_epoch_));
  if (num_cycles_ < 0) num_cycles_ = kind_ == Kind::CosineWithRestarts ? 1.0 : 0.5;
  if (kind_ == Kind::Polynomial && !(learning_rate_ > lr_end_))
    throw ConfigError(
        fmt::format("lr_end ({}) must be smaller than learning_rate ({})", lr_end_, learning_rate_),
        {.key = "train.lr_end", .hint = "lower lr_end, or raise learning_rate"});
}

double LearningRateSchedule::at(int64_t step) const { return learning_rate_ * factor(step); }

double LearningRateSchedule::factor(int64_t step) const {
  if (kind_ == Kind::Constant) return 1.0;
  if (kind_ == Kind::CosineByEpoch) return cosine_by_epoch(step);
  if (is_of_deepspeed()) return deepspeed(step);
  if (step >= warmup_steps_) return decayed(step);
  const double rise = static_cast<double>(step) / at_least_one(warmup_steps_);
  return kind_ == Kind::WarmupStableDecay ? rise * (1.0 - min_lr_ratio_) + min_lr_ratio_ : rise;
}

double LearningRateSchedule::decayed(int64_t step) const {
  const double progress =
      static_cast<double>(step - warmup_steps_) / at_least_one(total_steps_ - warmup_steps_);
  const auto cosine = [](double turns) { return 0.5 * (1.0 + std::cos(std::numbers::pi * turns)); };
  switch (kind_) {
    case Kind::Linear:
      return std::max(0.0, static_cast<double>(total_steps_ - step) /
                               at_least_one(total_steps_ - warmup_steps_));
    case Kind::CosineWithRestarts:
      return progress >= 1.0 ? 0.0 : std::max(0.0, cosine(std::fmod(num_cycles_ * progress, 1.0)));
    case Kind::Cosine:  // the same formula, with min_lr_ratio_ = 0
    case Kind::CosineWithMinLr:
      return std::max(0.0,
                      cosine(num_cycles_ * 2.0 * progress) * (1.0 - min_lr_ratio_) + min_lr_ratio_);
    case Kind::InverseSqrt: {
      const double timescale = warmup_steps_ > 0 ? static_cast<double>(warmup_steps_) : 10000.0;
      const double shift = timescale - static_cast<double>(warmup_steps_);
      return 1.0 / std::sqrt((static_cast<double>(step) + shift) / timescale);
    }
    case Kind::Polynomial:
      return polynomial(step);
    case Kind::WarmupStableDecay:
      return stable_decay(step);
    case Kind::Constant:
    case Kind::ConstantWithWarmup:
    case Kind::CosineByEpoch:
    case Kind::WarmupLr:
    case Kind::WarmupDecayLr:
    case Kind::WarmupCosineLr:
      break;
  }
  return 1.0;
}

double LearningRateSchedule::cosine_by_epoch(int64_t step) const {
  const auto epoch = static_cast<double>(step / steps_per_epoch_);
  if (epoch < warmup_epochs_) return std::min(1.0, (epoch + 1) / warmup_epochs_);
  const double epochs =
      std::ceil(static_cast<double>(total_steps_) / static_cast<double>(steps_per_epoch_));
  const double progress = (epoch - warmup_epochs_) / std::max(1.0, epochs - warmup_epochs_);
  const double floor = learning_rate_ > 0 ? std::min(1.0, min_lr_ / learning_rate_) : 0;
  return floor + (1 - floor) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

bool LearningRateSchedule::is_of_deepspeed() const {
  return kind_ == Kind::WarmupLr || kind_ == Kind::WarmupDecayLr || kind_ == Kind::WarmupCosineLr;
}

// DeepSpeed's engine steps its scheduler after the optimizer, beginning with iteration -1. So the
// update that follows `step` updates has the rate of iteration step - 1.
double LearningRateSchedule::deepspeed(int64_t step) const {
  const bool is_cosine = kind_ == Kind::WarmupCosineLr;
  if (step == 0 && is_cosine) return 0.0;
  const int64_t iteration = std::max<int64_t>(0, step - 1);
  const double low = is_cosine            ? warmup_.warmup_min_ratio
                     : learning_rate_ > 0 ? warmup_.warmup_min_lr / learning_rate_
                                          : 0;
  const auto between = [](double from, double share) { return from + (1 - from) * share; };
  if (iteration < warmup_steps_)
    return between(low, warmup_.warmup_type == "log"
                            ? std::log(static_cast<double>(iteration + 1)) /
                                  std::log(static_cast<double>(warmup_steps_))
                            : static_cast<double>(iteration) / static_cast<double>(warmup_steps_));
  if (kind_ == Kind::WarmupLr) return 1.0;
  const double length = at_least_one(total_steps_ - warmup_steps_);
  if (!is_cosine)
    return between(low, std::max(0.0, static_cast<double>(total_steps_ - iteration) / length));
  const double progress =
      std::min(1.0, static_cast<double>(iteration - warmup_steps_ + 1) / length);
  return between(min_lr_ratio_, 0.5 * (1.0 + std::cos(std::numbers::pi * progress)));
}

double LearningRateSchedule::stable_decay(int64_t step) const {
  const int64_t decay_start = total_steps_ - decay_steps_;
  if (step < decay_start) return 1.0;
  if (step >= total_steps_) return min_lr_ratio_;
  const double progress = static_cast<double>(step - decay_start) / at_least_one(decay_steps_);
  const double factor = 0.5 * (1.0 + std::cos(std::numbers::pi * num_cycles_ * 2.0 * progress));
  return std::max(0.0, factor * (1.0 - min_lr_ratio_) + min_lr_ratio_);
}

double LearningRateSchedule::polynomial(int64_t step) const {
  if (step > total_steps_ || total_steps_ == warmup_steps_) return lr_end_ / learning_rate_;
  const double remaining = 1.0 - static_cast<double>(step - warmup_steps_) /
                                     static_cast<double>(total_steps_ - warmup_steps_);
  const double rate = (learning_rate_ - lr_end_) * std::pow(remaining, power_) + lr_end_;
  return rate / learning_rate_;
}

}  // namespace convoy::optim
