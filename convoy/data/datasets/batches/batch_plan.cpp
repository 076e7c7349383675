// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/batches/batch_plan.h"

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/batches/item_assignment.h"
#include "convoy/data/datasets/batches/pack_rows.h"

namespace convoy::data {
namespace {

EpochOrderConfig order_config(const BatchPlanConfig& config) {
  return {.batch_size = config.batch_size,
          .grad_accum = config.grad_accum,
          .world_size = config.world_size,
          .global_batch = config.global_batch,
          .shuffle = config.shuffle && config.mix.parts.empty(),  // a mix shuffles its rows itself
          .seed = config.seed};
}

std::vector<std::vector<int64_t>> packed_items(const TokenDataset& dataset,
                                               const std::vector<std::vector<int64_t>>& items,
                                               int64_t block_tokens) {
  std::vector<int64_t> lengths_tokens;
  for (const std::vector<int64_t>& rows : items) {
    lengths_tokens.push_back(0);
    for (const int64_t row : rows) lengths_tokens.back() += dataset.length_tokens(row);
  }
  std::vector<std::vector<int64_t>> blocks = pack_best_fit_decreasing(lengths_tokens, block_tokens);
  for (std::vector<int64_t>& block : blocks) {
    std::vector<int64_t> rows;
    for (const int64_t item : block) {
      const std::vector<int64_t>& own = items[static_cast<size_t>(item)];
      rows.insert(rows.end(), own.begin(), own.end());
    }
    block = std::move(rows);
  }
  return blocks;
}

// The rows of each item. Items are dealt to the ranks.
std::vector<std::vector<int64_t>> blocks_of(const TokenDataset& dataset,
                                            const BatchPlanConfig& config) {
  if (!config.mix.parts.empty()) return {};
  const int64_t together = config.rows_of_item;
  CONVOY_INVARIANT(together >= 1 && dataset.num_rows() % together == 0, "{} rows, {} to an item",
                   dataset.num_rows(), together);
  std::vector<std::vector<int64_t>> items(static_cast<size_t>(dataset.num_rows() / together));
  for (int64_t row = 0; row < dataset.num_rows(); ++row)
    items[static_cast<size_t>(row / together)].push_back(row);
  return config.packing ? packed_items(dataset, items, config.block_tokens) : items;
}

std::shared_ptr<const MixedItems> mixed_items(const TokenDataset& dataset,
                                              const BatchPlanConfig& config) {
  if (config.mix.parts.empty()) return nullptr;
  return std::make_shared<const MixedItems>(dataset, config.mix,
                                            MixedItemsConfig{.shuffle = config.shuffle,
                                                             .packing = config.packing,
                                                             .block_tokens = config.block_tokens,
                                                             .seed = config.seed});
}

}  // namespace

BatchPlan::BatchPlan(TokenDataset dataset, BatchPlanConfig config)
    : dataset_(std::move(dataset)),
      config_(std::move(config)),
      blocks_(blocks_of(dataset_, config_)),
      mixed_(mixed_items(dataset_, config_)),
      order_(mixed_ ? mixed_->items_per_epoch() : std::ssize(blocks_), order_config(config_)) {
  config_.grad_accum = order_.config().grad_accum;
  config_.global_batch = order_.config().global_batch;
}

std::vector<int64_t> BatchPlan::rows_of(int64_t epoch, int64_t item) const {
  return mixed_ ? mixed_->rows(epoch * mixed_->items_per_epoch() + item)
                : blocks_[static_cast<size_t>(item)];
}

int64_t BatchPlan::tokens_of(int64_t epoch, int64_t item) const {
  int64_t count = 0;
  for (const int64_t row : rows_of(epoch, item)) count += dataset_.length_tokens(row);
  return count;
}

std::vector<int64_t> BatchPlan::items_of(StepPosition position, int64_t micro_batch,
                                         int64_t rank) const {
  CONVOY_INVARIANT(micro_batch >= 0 && micro_batch < config_.grad_accum && rank >= 0 &&
                       rank < config_.world_size,
                   "micro-batch {} of {}, rank {} of {}", micro_batch, config_.grad_accum, rank,
                   config_.world_size);
  return items_of_step(position)[static_cast<size_t>(micro_batch * config_.world_size + rank)];
}

std::vector<std::vector<int64_t>> BatchPlan::items_of_step(StepPosition position) const {
  const std::vector<int64_t> items = order_.global_batch(position);
  const auto slots = static_cast<size_t>(config_.grad_accum * config_.world_size);
  std::vector<std::vector<size_t>> dealt;
  if (config_.balance_tokens) {
    std::vector<int64_t> tokens;
    for (const int64_t item : items) tokens.push_back(tokens_of(position.epoch, item));
    dealt = assign_by_tokens(tokens, slots);
  } else {
    dealt = assign_in_turn(items.size(), slots);
  }
  std::vector<std::vector<int64_t>> own(slots);
  for (size_t slot = 0; slot < slots; ++slot)
    for (const size_t index : dealt[slot]) own[slot].push_back(items[index]);
  return own;
}

BatchPlan::Largest BatchPlan::largest_micro_batch(int64_t first_step, int64_t end_step) const {
  Largest largest;
  int64_t epoch_of_largest = 0;
  std::vector<int64_t> largest_items;
  for (int64_t step = first_step; step < end_step; ++step) {
    const int64_t epoch = step / steps_per_epoch();
    for (std::vector<int64_t>& items : items_of_step({epoch, step % steps_per_epoch()})) {
      int64_t tokens = 0;
      for (const int64_t item : items) tokens += tokens_of(epoch, item);
      if (tokens <= largest.tokens) continue;
      largest.tokens = tokens;
      epoch_of_largest = epoch;
      largest_items = std::move(items);
    }
  }
  largest.rows = rows_of_items(epoch_of_largest, largest_items);
  return largest;
}

std::vector<int64_t> BatchPlan::rows(StepPosition position, int64_t micro_batch,
                                     int64_t rank) const {
  return rows_of_items(position.epoch, items_of(position, micro_batch, rank));
}

std::vector<int64_t> BatchPlan::rows(StepPosition position) const {
  return rows_of_items(position.epoch, order_.global_batch(position));
}

std::vector<int64_t> BatchPlan::rows_of_items(int64_t epoch,
                                              const std::vector<int64_t>& items) const {
  std::vector<int64_t> rows;
  for (const int64_t item : items) {
    const std::vector<int64_t> block = rows_of(epoch, item);
    rows.insert(rows.end(), block.begin(), block.end());
  }
  return rows;
}

int64_t BatchPlan::supervised_tokens(StepPosition position) const {
  int64_t count = 0;
  for (const int64_t item : order_.global_batch(position))
    for (const int64_t row : rows_of(position.epoch, item))
      count += dataset_.supervised_tokens(row);
  return count;
}

double BatchPlan::loss_weight(StepPosition position) const {
  double sum = 0;
  for (const int64_t item : order_.global_batch(position))
    for (const int64_t row : rows_of(position.epoch, item)) sum += dataset_.loss_weight(row);
  return sum;
}

int64_t BatchPlan::total_tokens(StepPosition position) const {
  int64_t count = 0;
  for (const int64_t item : order_.global_batch(position)) count += tokens_of(position.epoch, item);
  return count;
}

std::vector<int64_t> BatchPlan::row_tokens(StepPosition position) const {
  std::vector<int64_t> tokens;
  for (const int64_t item : order_.global_batch(position))
    for (const int64_t row : rows_of(position.epoch, item))
      tokens.push_back(dataset_.length_tokens(row));
  return tokens;
}

int64_t BatchPlan::num_rows(StepPosition position) const {
  int64_t count = 0;
  for (const int64_t item : order_.global_batch(position))
    count += std::ssize(rows_of(position.epoch, item));
  return count;
}

}  // namespace convoy::data
