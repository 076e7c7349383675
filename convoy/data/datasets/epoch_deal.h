// SPDX-License-Identifier: Apache-2.0
//
// Assigns units (rows, blocks, windows) to ranks at each step: a pure function of their number,
// seed, epoch and position. Any step can be computed alone, and a resumed run reads exactly the
// units of the uninterrupted one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace convoy::data {

struct DealConfig {
  int64_t batch_size = 1;  // units per micro-batch and rank
  int64_t grad_accum = 1;
  int64_t world_size = 1;
  // Units of one step over all ranks. 0 = batch_size x grad_accum x world_size. Another number
  // determines grad_accum: the fewest micro-batches of at most batch_size that hold it.
  int64_t global_batch = 0;
  bool shuffle = true;
  uint64_t seed = 0;
};

// One step of one epoch.
struct StepPosition {
  int64_t epoch = 0;
  int64_t step = 0;  // within the epoch
};

// Thread-safe.
class EpochDeal {
 public:
  // Throws ConfigError when a count of `config` is below 1.
  EpochDeal(int64_t num_units, const DealConfig& config);

  // Equal for every epoch. The last global batch of an epoch may be partial; it is used.
  int64_t steps_per_epoch() const;
  int64_t num_units() const { return num_units_; }
  // Units of the global batch, in shuffled order: a slice of the epoch's permutation.
  std::vector<int64_t> global_batch(StepPosition position) const;
  // The units of one micro-batch of a rank. May be empty on the last, partial step of an epoch.
  std::vector<int64_t> units(StepPosition position, int64_t micro_batch, int64_t rank) const;

  // With the resolved global_batch and grad_accum.
  const DealConfig& config() const { return config_; }

 private:
  struct EpochOrder;

  int64_t num_units_;
  DealConfig config_;
  // Permutation of the epoch asked for last, behind a lock.
  std::shared_ptr<EpochOrder> last_order_;
};

}  // namespace convoy::data
