// SPDX-License-Identifier: Apache-2.0
//
// The rows that each rank reads at each step: a pure function of (data, seed, epoch, position). Any
// step can be computed alone, and a resumed run reads exactly the rows of the uninterrupted one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "convoy/data/datasets/batches/epoch_order.h"
#include "convoy/data/datasets/batches/mixed_items.h"
#include "convoy/data/datasets/tokens/token_dataset.h"

namespace convoy::data {

struct BatchPlanConfig {
  int64_t batch_size = 1;  // rows, or blocks when packing, per micro-batch and rank
  int64_t grad_accum = 1;
  int64_t world_size = 1;
  // Number of rows, or blocks, of one step over all ranks. 0 = batch_size x grad_accum x
  // world_size. Any other number determines grad_accum: the smallest number of micro-batches of at
  // most batch_size that hold the step.
  int64_t global_batch = 0;
  bool packing = false;      // true: rows are packed into blocks, best-fit decreasing
  int64_t block_tokens = 0;  // capacity of a block when packing
  bool shuffle = true;
  // True: deals the items of a step by their token counts, so that all micro-batches and ranks get
  // nearly equal numbers of tokens. False: deals the items in turn. Both deal the same items in a
  // step.
  bool balance_tokens = false;
  uint64_t seed = 0;
  // Number of neighbouring rows that form one item: 2 for pairs, else 1.
  int64_t rows_of_item = 1;
  // Parts of the data set, drawn by weight. Without parts every row is drawn once an epoch.
  MixConfig mix = {};
};

// Thread-safe.
class BatchPlan {
 public:
  // Throws ConfigError when a count is below 1, or an item does not fit into a block. The number of
  // rows must be a multiple of rows_of_item; with a mix rows_of_item must be 1.
  BatchPlan(TokenDataset dataset, BatchPlanConfig config);

  // The number of steps, equal for every epoch. Rows are packed once; each epoch shuffles whole
  // blocks again. The last global batch of an epoch may be partial; it is used.
  int64_t steps_per_epoch() const { return order_.steps_per_epoch(); }
  // Number of items dealt to ranks: blocks when packing, else rows.
  int64_t num_items() const { return order_.num_items(); }
  // Rows of one micro-batch, in layout order. May be empty on the last, partial step of an epoch:
  // the rank then contributes nothing but still takes part in collectives.
  std::vector<int64_t> rows(StepPosition position, int64_t micro_batch, int64_t rank) const;
  // Rows of the whole global batch, in an order that does not depend on ranks and micro-batches.
  std::vector<int64_t> rows(StepPosition position) const;
  // Number of supervised tokens of the whole global batch: every rank, every micro-batch.
  int64_t supervised_tokens(StepPosition position) const;
  // The sum of the weights of these tokens, which is the divisor of the loss.
  double loss_weight(StepPosition position) const;
  int64_t total_tokens(StepPosition position) const;
  int64_t num_rows(StepPosition position) const;
  // Number of tokens of each row of the global batch.
  std::vector<int64_t> row_tokens(StepPosition position) const;

  // The micro-batch with the most tokens, over all ranks and the steps [first, end), counted from
  // the start of the run.
  struct Largest {
    int64_t tokens = 0;
    std::vector<int64_t> rows = {};
  };
  Largest largest_micro_batch(int64_t first_step, int64_t end_step) const;

  const TokenDataset& dataset() const { return dataset_; }
  const EpochOrder& order() const { return order_; }  // deals blocks when packing, else rows
  // The settings, with global_batch and grad_accum resolved.
  const BatchPlanConfig& config() const { return config_; }
  // The schedule that says which part each row of an epoch comes from; nullptr without a mix.
  const MixSchedule* mix_schedule() const { return mixed_ ? &mixed_->schedule() : nullptr; }

 private:
  std::vector<int64_t> rows_of(int64_t epoch, int64_t item) const;
  std::vector<int64_t> rows_of_items(int64_t epoch, const std::vector<int64_t>& items) const;
  int64_t tokens_of(int64_t epoch, int64_t item) const;
  // The items of each slot. The slot of a micro-batch and rank is micro_batch x world_size + rank.
  std::vector<std::vector<int64_t>> items_of_step(StepPosition position) const;
  std::vector<int64_t> items_of(StepPosition position, int64_t micro_batch, int64_t rank) const;

  TokenDataset dataset_;
  BatchPlanConfig config_;
  // The rows of each item; one row per item without packing and pairs.
  std::vector<std::vector<int64_t>> blocks_;
  std::shared_ptr<const MixedItems> mixed_;  // with a mix, in place of blocks_
  EpochOrder order_;                         // deals the items
};

}  // namespace convoy::data
