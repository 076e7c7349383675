// SPDX-License-Identifier: Apache-2.0
//
// Assigns items (rows, blocks, windows) to ranks at each step: a pure function of their number,
// seed, epoch and position. Any step can be computed alone, and a resumed run reads exactly the
// items of the uninterrupted one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace convoy::data {

struct EpochOrderConfig {
  int64_t batch_size = 1;  // items per micro-batch and rank
  int64_t grad_accum = 1;
  int64_t world_size = 1;
  // Number of items of one step over all ranks. 0 = batch_size x grad_accum x world_size. Any other
  // number determines grad_accum: the smallest number of micro-batches of at most batch_size that
  // hold the step.
  int64_t global_batch = 0;
  bool shuffle = true;
  uint64_t seed = 0;
};

// The position of a step in a run.
struct StepPosition {
  int64_t epoch = 0;
  int64_t step = 0;  // within the epoch
};

// Thread-safe.
class EpochOrder {
 public:
  // Throws ConfigError when a count of `config` is below 1.
  EpochOrder(int64_t num_items, const EpochOrderConfig& config);

  // The number of steps, equal for every epoch. The last global batch of an epoch may be partial;
  // it is used.
  int64_t steps_per_epoch() const;
  int64_t num_items() const { return num_items_; }
  // Items of the global batch, in shuffled order: a slice of the epoch's permutation.
  std::vector<int64_t> global_batch(StepPosition position) const;
  // The items of one micro-batch of a rank. May be empty on the last, partial step of an epoch.
  std::vector<int64_t> items(StepPosition position, int64_t micro_batch, int64_t rank) const;

  // The settings, with global_batch and grad_accum resolved.
  const EpochOrderConfig& config() const { return config_; }

 private:
  struct Permutation;

  int64_t num_items_;
  EpochOrderConfig config_;
  // The permutation of the epoch that was requested last, guarded by a mutex.
  std::shared_ptr<Permutation> last_order_;
};

}  // namespace convoy::data
