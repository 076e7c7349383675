// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/batches/epoch_order.h"

#include <algorithm>
#include <mutex>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/seeded_shuffle.h"

namespace convoy::data {
namespace {

// Makes the random numbers of the epoch order independent of other uses of the same seed.
constexpr uint64_t kEpochOrderStream = 0x65706f63682d6f72ull;

}  // namespace

struct EpochOrder::Permutation {
  std::mutex mutex;
  int64_t epoch = -1;
  std::vector<int64_t> items;
};

EpochOrder::EpochOrder(int64_t num_items, const EpochOrderConfig& config)
    : num_items_(num_items), config_(config), last_order_(std::make_shared<Permutation>()) {
  if (config.batch_size < 1 || config.grad_accum < 1 || config.world_size < 1)
    throw ConfigError(
        fmt::format("wanted batch size, accumulation and world of at least 1, found {}, {}, {}",
                    config.batch_size, config.grad_accum, config.world_size),
        {.hint = "give each a number from 1 on"});
  const int64_t most_at_once = config.batch_size * config.world_size;
  if (config.global_batch > 0)
    config_.grad_accum = (config.global_batch + most_at_once - 1) / most_at_once;
  else
    config_.global_batch = most_at_once * config.grad_accum;
}

int64_t EpochOrder::steps_per_epoch() const {
  return (num_items() + config_.global_batch - 1) / config_.global_batch;
}

std::vector<int64_t> EpochOrder::global_batch(StepPosition position) const {
  CONVOY_INVARIANT(position.epoch >= 0 && position.step >= 0 && position.step < steps_per_epoch(),
                   "epoch {}, step {} of {}", position.epoch, position.step, steps_per_epoch());
  const int64_t begin = position.step * config_.global_batch;
  const int64_t end = std::min(begin + config_.global_batch, num_items());
  std::vector<int64_t> items(static_cast<size_t>(end - begin));
  if (!config_.shuffle) {
    for (int64_t item = begin; item < end; ++item) items[static_cast<size_t>(item - begin)] = item;
    return items;
  }
  const std::lock_guard lock(last_order_->mutex);
  if (last_order_->epoch != position.epoch) {
    last_order_->items = seeded_permutation(
        num_items(), {kEpochOrderStream, config_.seed, static_cast<uint64_t>(position.epoch)});
    last_order_->epoch = position.epoch;
  }
  std::copy(last_order_->items.begin() + begin, last_order_->items.begin() + end, items.begin());
  return items;
}

// A slot is one micro-batch of one rank. Slots are numbered by micro-batch first, then by rank;
// item u goes to slot u mod (number of slots). So accumulation 4 on one rank and accumulation 2 on
// two ranks have the same micro-batches, and a partial batch spreads evenly.
std::vector<int64_t> EpochOrder::items(StepPosition position, int64_t micro_batch,
                                       int64_t rank) const {
  CONVOY_INVARIANT(micro_batch >= 0 && micro_batch < config_.grad_accum && rank >= 0 &&
                       rank < config_.world_size,
                   "micro-batch {} of {}, rank {} of {}", micro_batch, config_.grad_accum, rank,
                   config_.world_size);
  const std::vector<int64_t> whole = global_batch(position);
  const auto slots = static_cast<size_t>(config_.grad_accum * config_.world_size);
  std::vector<int64_t> own;
  for (auto item = static_cast<size_t>(micro_batch * config_.world_size + rank);
       item < whole.size(); item += slots)
    own.push_back(whole[item]);
  return own;
}

}  // namespace convoy::data
