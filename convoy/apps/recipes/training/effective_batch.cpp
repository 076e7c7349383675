// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/effective_batch.h"

#include <cmath>

#include "convoy/core/base/counted.h"
#include "convoy/data/datasets/batches/effective_batch.h"
#include "convoy/train/loop/train_loop.h"

namespace convoy::recipes {
namespace {

double batch_ratio(const settings::TrainingSettings& train, int64_t global_batch) {
  return static_cast<double>(global_batch) / static_cast<double>(train.lr_reference_batch);
}

double scaling_factor(const settings::TrainingSettings& train, int64_t global_batch) {
  if (train.lr_scaling == "linear") return batch_ratio(train, global_batch);
  if (train.lr_scaling == "sqrt") return std::sqrt(batch_ratio(train, global_batch));
  return 1;
}

}  // namespace

double scaled_learning_rate(const settings::TrainingSettings& train, int64_t global_batch) {
  return train.learning_rate * scaling_factor(train, global_batch);
}

std::string scaling_sentence(const settings::TrainingSettings& train, int64_t global_batch) {
  if (train.lr_scaling == "none") return "";
  const std::string ratio = fmt::format("{} / {}", global_batch, train.lr_reference_batch);
  return fmt::format("learning rate: {:.6g} x {} (lr_scaling {}) = {:.6g}", train.learning_rate,
                     train.lr_scaling == "sqrt" ? fmt::format("sqrt({})", ratio) : ratio,
                     train.lr_scaling, scaled_learning_rate(train, global_batch));
}

std::string scaling_warning(const settings::TrainingSettings& train, int64_t global_batch,
                            const optim::LearningRateSchedule& schedule) {
  const double factor = scaling_factor(train, global_batch);
  const double peak = scaled_learning_rate(train, global_batch);
  if (factor <= 1 || schedule.at(0) < peak) return "";
  return fmt::format(
      "the learning rate is scaled by {:.3g} and starts at its peak of {:.6g}, without warm-up: "
      "large batches often diverge so (train.warmup_ratio=0.06 with a schedule that warms up)",
      factor, peak);
}

void report_batch(const Log& log, const settings::TrainingSettings& train,
                  const data::EpochOrder& order, const std::string& unit) {
  const data::EpochOrderConfig& batch = order.config();
  const int64_t total_steps = train::total_steps(train, order.steps_per_epoch());
  log.info(fmt::format("{}; {} ({} an epoch)", data::batch_sentence(batch, unit),
                       counted(total_steps, "step"), order.steps_per_epoch()));
  const std::string scaling = scaling_sentence(train, batch.global_batch);
  if (!scaling.empty()) log.info(scaling);
  const optim::LearningRateSchedule schedule(train.schedule,
                                             scaled_learning_rate(train, batch.global_batch),
                                             total_steps, order.steps_per_epoch());
  const std::string risk = scaling_warning(train, batch.global_batch, schedule);
  if (!risk.empty()) log.warning(risk);
  const std::string idle = data::idle_ranks_warning(batch, unit);
  if (!idle.empty()) log.warning(idle);
}

}  // namespace convoy::recipes
