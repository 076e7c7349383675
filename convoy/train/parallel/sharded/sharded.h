// SPDX-License-Identifier: Apache-2.0
//
// `zero1`, `zero2`, `zero3`: the ranks divide training state that each of them would otherwise hold
// whole. Every rank optimizes one piece of each unit's trained parameters.
//
//   zero1   divides optimizer states; whole gradients are kept until the step's last micro-batch
//   zero2   also divides gradients: summed and cut after every micro-batch's backward
//   zero3   also divides parameters, frozen ones too: a unit is gathered while it is used
#pragma once

#include <c10/core/Stream.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "convoy/train/parallel/replicated_buffers.h"
#include "convoy/train/parallel/sharded/sharded_gradients.h"
#include "convoy/train/parallel/sharded/sharded_units.h"
#include "convoy/train/parallel/strategy.h"

namespace convoy::parallel {

enum class ShardLevel { Optimizer, Gradients, Parameters };

enum class Offload { None, Optimizer, Parameters };

struct ShardedConfig {
  ShardLevel level = ShardLevel::Parameters;
  // With level Parameters: the parameters of one unit and type stay whole if they have fewer
  // elements than this.
  int64_t smallest_elements = 0;
  // With level Parameters. False: a unit stays gathered from its forward to the end of backward.
  bool reshard_after_forward = true;
  size_t prefetch = 0;  // with level Parameters: see ShardedUnitsConfig::prefetch
  // Type in which gradients are sent; none: the gradients' own type. Gradients add up in fp32.
  std::optional<at::ScalarType> wire = {};
  // The state that lies in the host's memory. Optimizer: optimizer states, and the gradients and
  // values of the step. Parameters: also the values of the parameters. For devices other than the
  // CPU.
  Offload offload = Offload::None;
  // Number of successive ranks that share one training state; the other ranks hold replicas of it
  // (hybrid shard). 0: all ranks share one state. It divides the number of ranks.
  int ranks_that_share = 0;
};

class Sharded : public Strategy {
 public:
  // Collective when not all ranks share one state. Throws ConfigError.
  Sharded(comm::Group& group, const ShardedConfig& config);

  void prepare(std::vector<nn::Unit> units) override { take_over(std::move(units), nullptr); }
  void prepare_deferred(std::vector<nn::Unit> units, const nn::DeferredValues& values) override {
    take_over(std::move(units), &values);
  }
  const std::vector<ParameterShard>& shards() const override { return shards_; }
  int num_owners() override { return replicas_ ? replicas_->size() : 1; }
  bool writes_shards() const override { return !replicas_ || replicas_->rank() == 0; }
  nn::Residency* residency() override { return &units_; }
  bool values_are_whole() const override;
  void begin_micro_batch(MicroBatch which) override;
  void finish_gradients() override;
  void finish_step() override;
  void settle() override { units_.finish_gathers(); }
  comm::Group& group() override { return group_; }

 private:
  bool shards_values() const { return config_.level == ShardLevel::Parameters; }
  void take_over(std::vector<nn::Unit> units, const nn::DeferredValues* values);
  void check_offload(const std::vector<nn::Unit>& units) const;
  void list_shards();
  void bring_to_host(size_t flat);

  comm::Group& group_;
  const ShardedConfig config_;
  std::unique_ptr<comm::Group> owned_sharing_;  // null: all ranks share
  std::unique_ptr<comm::Group> replicas_;       // ranks that hold the same pieces
  comm::Group& sharing_;
  ShardedUnits units_;
  ReplicatedBuffers buffers_;
  std::vector<std::shared_ptr<FlatUnit>> trained_;
  std::unique_ptr<ShardedGradients> gradients_;
  // By flat unit: the values that the optimizer changes, and their gradients.
  std::vector<at::Tensor> values_;
  std::vector<at::Tensor> stepped_gradients_;
  std::vector<ParameterShard> shards_;
  std::optional<c10::Stream> to_host_;  // copies offloaded gradients, beside backward
  bool has_adapters_ = false;           // some unit's own weights are frozen
  bool last_ = false;                   // the running micro-batch is the step's last
};

}  // namespace convoy::parallel
