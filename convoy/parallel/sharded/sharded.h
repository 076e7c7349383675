// SPDX-License-Identifier: Apache-2.0
//
// `zero1`, `zero2`, `zero3`: ranks share what each of them would else hold for itself. Every rank
// optimizes one piece of each unit's trained parameters.
//
//   zero1   optimizer states; whole gradients are kept until the step's last micro-batch
//   zero2   and gradients: summed and cut after every micro-batch's backward
//   zero3   and parameters, frozen ones too: a unit is gathered while it is used
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "convoy/parallel/replicated_buffers.h"
#include "convoy/parallel/sharded/sharded_gradients.h"
#include "convoy/parallel/sharded/sharded_units.h"
#include "convoy/parallel/strategy.h"

namespace convoy::parallel {

enum class ShardLevel { Optimizer, Gradients, Parameters };

class Sharded : public Strategy {
 public:
  // With Parameters those of one type and unit that are fewer than `smallest_elements` stay whole.
  Sharded(comm::Group& group, ShardLevel level, int64_t smallest_elements);

  void prepare(std::vector<nn::Unit> units) override { take_over(std::move(units), nullptr); }
  void prepare_deferred(std::vector<nn::Unit> units, const nn::DeferredValues& values) override {
    take_over(std::move(units), &values);
  }
  const std::vector<ParameterShard>& shards() const override { return shards_; }
  int num_owners() override { return 1; }
  nn::Residency* residency() override { return shards_values() ? &units_ : nullptr; }
  bool values_are_whole() const override;
  void begin_micro_batch(MicroBatch which) override;
  void finish_gradients() override;
  void finish_step() override;
  comm::Group& group() override { return group_; }

 private:
  bool shards_values() const { return level_ == ShardLevel::Parameters; }
  void take_over(std::vector<nn::Unit> units, const nn::DeferredValues* values);
  void list_shards();

  comm::Group& group_;
  const ShardLevel level_;
  const int64_t smallest_elements_;
  ShardedUnits units_;
  ReplicatedBuffers buffers_;
  std::vector<std::shared_ptr<FlatUnit>> trained_;
  std::unique_ptr<ShardedGradients> gradients_;
  std::vector<ParameterShard> shards_;
  bool last_ = false;  // the running micro-batch is the step's last
};

}  // namespace convoy::parallel
