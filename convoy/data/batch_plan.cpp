// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/batch_plan.h"

#include "convoy/data/balanced_deal.h"
#include "convoy/data/pack_rows.h"

namespace convoy::data {
namespace {

DealConfig deal_config(const BatchPlanConfig& config) {
  return {.batch_size = config.batch_size,
          .grad_accum = config.grad_accum,
          .world_size = config.world_size,
          .global_batch = config.global_batch,
          .shuffle = config.shuffle,
          .seed = config.seed};
}

// Rows of each unit.
std::vector<std::vector<int64_t>> blocks_of(const TokenDataset& dataset,
                                            const BatchPlanConfig& config) {
  if (config.packing) {
    std::vector<int64_t> lengths_tokens(static_cast<size_t>(dataset.num_rows()));
    for (size_t row = 0; row < lengths_tokens.size(); ++row)
      lengths_tokens[row] = dataset.length_tokens(static_cast<int64_t>(row));
    return pack_best_fit_decreasing(lengths_tokens, config.block_tokens);
  }
  std::vector<std::vector<int64_t>> blocks;
  blocks.reserve(static_cast<size_t>(dataset.num_rows()));
  for (int64_t row = 0; row < dataset.num_rows(); ++row) blocks.push_back({row});
  return blocks;
}

}  // namespace

BatchPlan::BatchPlan(TokenDataset dataset, BatchPlanConfig config)
    : dataset_(std::move(dataset)),
      config_(config),
      blocks_(blocks_of(dataset_, config)),
      deal_(static_cast<int64_t>(blocks_.size()), deal_config(config)) {
  config_.grad_accum = deal_.config().grad_accum;
  config_.global_batch = deal_.config().global_batch;
}

int64_t BatchPlan::tokens_of(int64_t unit) const {
  int64_t count = 0;
  for (const int64_t row : blocks_[static_cast<size_t>(unit)]) count += dataset_.length_tokens(row);
  return count;
}

std::vector<int64_t> BatchPlan::units_of(StepPosition position, int64_t micro_batch,
                                         int64_t rank) const {
  if (!config_.balance_tokens) return deal_.units(position, micro_batch, rank);
  const std::vector<int64_t> units = deal_.global_batch(position);
  std::vector<int64_t> tokens;
  for (const int64_t unit : units) tokens.push_back(tokens_of(unit));
  const auto slots = static_cast<size_t>(config_.grad_accum * config_.world_size);
  const auto slot = static_cast<size_t>(micro_batch * config_.world_size + rank);
  const std::vector<std::vector<size_t>> dealt = deal_by_tokens(tokens, slots);
  std::vector<int64_t> own;
  for (const size_t index : dealt[slot]) own.push_back(units[index]);
  return own;
}

std::vector<int64_t> BatchPlan::rows(StepPosition position, int64_t micro_batch,
                                     int64_t rank) const {
  std::vector<int64_t> rows;
  for (const int64_t unit : units_of(position, micro_batch, rank)) {
    const auto& block = blocks_[static_cast<size_t>(unit)];
    rows.insert(rows.end(), block.begin(), block.end());
  }
  return rows;
}

int64_t BatchPlan::supervised_tokens(StepPosition position) const {
  int64_t count = 0;
  for (const int64_t unit : deal_.global_batch(position))
    for (const int64_t row : blocks_[static_cast<size_t>(unit)])
      count += dataset_.supervised_tokens(row);
  return count;
}

int64_t BatchPlan::total_tokens(StepPosition position) const {
  int64_t count = 0;
  for (const int64_t unit : deal_.global_batch(position)) count += tokens_of(unit);
  return count;
}

int64_t BatchPlan::num_rows(StepPosition position) const {
  int64_t count = 0;
  for (const int64_t unit : deal_.global_batch(position))
    count += static_cast<int64_t>(blocks_[static_cast<size_t>(unit)].size());
  return count;
}

}  // namespace convoy::data
