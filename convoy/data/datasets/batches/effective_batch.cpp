// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/batches/effective_batch.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"

namespace convoy::data {

int64_t wanted_global_batch(const settings::TrainingSettings& train, int64_t ranks) {
  const int64_t at_once = train.batch_rows() * ranks;
  const int64_t product = at_once * std::max<int64_t>(1, train.accumulation());
  if (train.global_batch_size == 0) return product;
  if (train.accumulation() > 0 && product != train.global_batch_size)
    throw ConfigError(
        fmt::format("train.global_batch_size is {}, but batch_size {} x {} x grad_accum {} is {}",
                    train.global_batch_size, train.batch_rows(), counted(ranks, "rank"),
                    train.accumulation(), product),
        {.key = "train.grad_accum", .hint = "leave out train.grad_accum: it is then derived"});
  return train.global_batch_size;
}

std::string batch_sentence(const EpochOrderConfig& order, const std::string& unit) {
  const int64_t most = order.batch_size * order.world_size * order.grad_accum;
  const std::string product =
      fmt::format("{} per rank x {} x {} accumulation", counted(order.batch_size, unit),
                  counted(order.world_size, "rank"), order.grad_accum);
  if (most == order.global_batch)
    return fmt::format("effective batch: {} = {} a step", product, order.global_batch);
  const int64_t least = order.global_batch / order.world_size;
  const std::string share = order.global_batch % order.world_size == 0
                                ? counted(least, unit)
                                : fmt::format("{} or {}", least, counted(least + 1, unit));
  return fmt::format("effective batch: {} a step, spread as {} per rank: up to {} = {}",
                     order.global_batch, share, product, most);
}

std::string idle_ranks_warning(const EpochOrderConfig& order, const std::string& unit) {
  if (order.global_batch >= order.world_size) return "";
  return fmt::format("the run's steps of {} leave {} of {} without work",
                     counted(order.global_batch, unit), order.world_size - order.global_batch,
                     counted(order.world_size, "rank"));
}

}  // namespace convoy::data
