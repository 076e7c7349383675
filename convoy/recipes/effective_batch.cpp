// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/effective_batch.h"

#include <algorithm>
#include <cmath>

#include "convoy/base/error.h"
#include "convoy/train/train_loop.h"

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

int64_t wanted_global_batch(const settings::TrainingSettings& train, int64_t ranks) {
  const int64_t at_once = train.batch_size * ranks;
  const int64_t product = at_once * std::max<int64_t>(1, train.grad_accum);
  if (train.global_batch_size == 0) return product;
  if (train.grad_accum > 0 && product != train.global_batch_size)
    throw ConfigError(
        fmt::format("train.global_batch_size is {}, but batch_size {} x {} ranks x grad_accum {} "
                    "is {}",
                    train.global_batch_size, train.batch_size, ranks, train.grad_accum, product),
        {.key = "train.grad_accum", .hint = "leave out train.grad_accum: it is then derived"});
  return train.global_batch_size;
}

double scaled_learning_rate(const settings::TrainingSettings& train, int64_t global_batch) {
  return train.learning_rate * scaling_factor(train, global_batch);
}

std::string batch_sentence(const data::DealConfig& batch, const std::string& unit) {
  const int64_t most = batch.batch_size * batch.world_size * batch.grad_accum;
  const std::string product =
      fmt::format("{} {} per rank x {} ranks x {} accumulation", batch.batch_size, unit,
                  batch.world_size, batch.grad_accum);
  if (most == batch.global_batch)
    return fmt::format("effective batch: {} = {} a step", product, batch.global_batch);
  const int64_t least = batch.global_batch / batch.world_size;
  const std::string share = batch.global_batch % batch.world_size == 0
                                ? fmt::format("{}", least)
                                : fmt::format("{} or {}", least, least + 1);
  return fmt::format("effective batch: {} a step, spread as {} {} per rank: up to {} = {}",
                     batch.global_batch, share, unit, product, most);
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
                  const data::EpochDeal& deal, const std::string& unit) {
  const data::DealConfig& batch = deal.config();
  const int64_t total_steps = train::total_steps(train, deal.steps_per_epoch());
  log.info(fmt::format("{}; {} steps ({} an epoch)", batch_sentence(batch, unit), total_steps,
                       deal.steps_per_epoch()));
  const std::string scaling = scaling_sentence(train, batch.global_batch);
  if (!scaling.empty()) log.info(scaling);
  const optim::LearningRateSchedule schedule(train.schedule,
                                             scaled_learning_rate(train, batch.global_batch),
                                             total_steps, deal.steps_per_epoch());
  const std::string risk = scaling_warning(train, batch.global_batch, schedule);
  if (!risk.empty()) log.warning(risk);
  if (batch.global_batch < batch.world_size)
    log.warning(fmt::format("the run's steps of {} {} leave {} of {} ranks without work",
                            batch.global_batch, unit, batch.world_size - batch.global_batch,
                            batch.world_size));
}

}  // namespace convoy::recipes
