// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/effective_batch.h"

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

std::string batch_sentence(const DealConfig& deal, const std::string& unit) {
  const int64_t most = deal.batch_size * deal.world_size * deal.grad_accum;
  const std::string product =
      fmt::format("{} per rank x {} x {} accumulation", counted(deal.batch_size, unit),
                  counted(deal.world_size, "rank"), deal.grad_accum);
  if (most == deal.global_batch)
    return fmt::format("effective batch: {} = {} a step", product, deal.global_batch);
  const int64_t least = deal.global_batch / deal.world_size;
  const std::string share = deal.global_batch % deal.world_size == 0
                                ? counted(least, unit)
                                : fmt::format("{} or {}", least, counted(least + 1, unit));
  return fmt::format("effective batch: {} a step, spread as {} per rank: up to {} = {}",
                     deal.global_batch, share, product, most);
}

std::string idle_ranks_warning(const DealConfig& deal, const std::string& unit) {
  if (deal.global_batch >= deal.world_size) return "";
  return fmt::format("the run's steps of {} leave {} of {} without work",
                     counted(deal.global_batch, unit), deal.world_size - deal.global_batch,
                     counted(deal.world_size, "rank"));
}

}  // namespace convoy::data
