// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/batch_plan.h"

#include <algorithm>
#include <mutex>

#include "convoy/base/error.h"
#include "convoy/data/balanced_deal.h"
#include "convoy/data/pack_rows.h"
#include "convoy/data/seeded_shuffle.h"

namespace convoy::data {
namespace {

// Keeps the order of epochs apart from other uses of the same seed.
constexpr uint64_t kEpochOrderStream = 0x65706f63682d6f72ull;

}  // namespace

struct BatchPlan::EpochOrder {
  std::mutex mutex;
  int64_t epoch = -1;
  std::vector<int64_t> units;
};

BatchPlan::BatchPlan(TokenDataset dataset, BatchPlanConfig config)
    : dataset_(std::move(dataset)), config_(config), last_order_(std::make_shared<EpochOrder>()) {
  CONVOY_CHECK(config.batch_size >= 1 && config.grad_accum >= 1 && config.world_size >= 1,
               ConfigError,
               "wanted batch size, accumulation and world of at least 1, found {}, {}, {}",
               config.batch_size, config.grad_accum, config.world_size);
  const int64_t most_at_once = config.batch_size * config.world_size;
  if (config.global_batch > 0)
    config_.grad_accum = (config.global_batch + most_at_once - 1) / most_at_once;
  else
    config_.global_batch = most_at_once * config.grad_accum;
  if (config.packing) {
    std::vector<int64_t> lengths_tokens(static_cast<size_t>(dataset_.num_rows()));
    for (size_t row = 0; row < lengths_tokens.size(); ++row)
      lengths_tokens[row] = dataset_.length_tokens(static_cast<int64_t>(row));
    blocks_ = pack_best_fit_decreasing(lengths_tokens, config.block_tokens);
  } else {
    blocks_.reserve(static_cast<size_t>(dataset_.num_rows()));
    for (int64_t row = 0; row < dataset_.num_rows(); ++row) blocks_.push_back({row});
  }
}

int64_t BatchPlan::steps_per_epoch() const {
  return (num_units() + config_.global_batch - 1) / config_.global_batch;
}

std::vector<int64_t> BatchPlan::global_batch(StepPosition position) const {
  CONVOY_INVARIANT(position.epoch >= 0 && position.step >= 0 && position.step < steps_per_epoch(),
                   "epoch {}, step {} of {}", position.epoch, position.step, steps_per_epoch());
  const int64_t begin = position.step * config_.global_batch;
  const int64_t end = std::min(begin + config_.global_batch, num_units());
  std::vector<int64_t> units(static_cast<size_t>(end - begin));
  if (!config_.shuffle) {
    for (int64_t unit = begin; unit < end; ++unit) units[static_cast<size_t>(unit - begin)] = unit;
    return units;
  }
  const std::lock_guard lock(last_order_->mutex);
  if (last_order_->epoch != position.epoch) {
    last_order_->units = seeded_permutation(
        num_units(), {kEpochOrderStream, config_.seed, static_cast<uint64_t>(position.epoch)});
    last_order_->epoch = position.epoch;
  }
  std::copy(last_order_->units.begin() + begin, last_order_->units.begin() + end, units.begin());
  return units;
}

int64_t BatchPlan::tokens_of(int64_t unit) const {
  int64_t count = 0;
  for (const int64_t row : blocks_[static_cast<size_t>(unit)]) count += dataset_.length_tokens(row);
  return count;
}

// Slots are numbered micro-batch major, and what is in a slot depends on their number alone. So
// accumulation 4 on one rank and accumulation 2 on two ranks have the same micro-batches, and a
// partial batch spreads evenly.
std::vector<int64_t> BatchPlan::rows(StepPosition position, int64_t micro_batch,
                                     int64_t rank) const {
  CONVOY_INVARIANT(micro_batch >= 0 && micro_batch < config_.grad_accum && rank >= 0 &&
                       rank < config_.world_size,
                   "micro-batch {} of {}, rank {} of {}", micro_batch, config_.grad_accum, rank,
                   config_.world_size);
  const std::vector<int64_t> units = global_batch(position);
  const auto slots = static_cast<size_t>(config_.grad_accum * config_.world_size);
  const auto slot = static_cast<size_t>(micro_batch * config_.world_size + rank);
  std::vector<int64_t> tokens;
  if (config_.balance_tokens)
    for (const int64_t unit : units) tokens.push_back(tokens_of(unit));
  const auto dealt =
      config_.balance_tokens ? deal_by_tokens(tokens, slots) : deal_in_turn(units.size(), slots);
  std::vector<int64_t> rows;
  for (const size_t index : dealt[slot]) {
    const auto& block = blocks_[static_cast<size_t>(units[index])];
    rows.insert(rows.end(), block.begin(), block.end());
  }
  return rows;
}

int64_t BatchPlan::supervised_tokens(StepPosition position) const {
  int64_t count = 0;
  for (const int64_t unit : global_batch(position))
    for (const int64_t row : blocks_[static_cast<size_t>(unit)])
      count += dataset_.supervised_tokens(row);
  return count;
}

int64_t BatchPlan::total_tokens(StepPosition position) const {
  int64_t count = 0;
  for (const int64_t unit : global_batch(position)) count += tokens_of(unit);
  return count;
}

int64_t BatchPlan::num_rows(StepPosition position) const {
  int64_t count = 0;
  for (const int64_t unit : global_batch(position))
    count += static_cast<int64_t>(blocks_[static_cast<size_t>(unit)].size());
  return count;
}

}  // namespace convoy::data
