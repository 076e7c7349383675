// SPDX-License-Identifier: Apache-2.0
//
// `none`: one rank. Gradients are summed over micro-batches in fp32. An fp32 gradient is kept as
// autograd made it, and so is every gradient of a step that has one micro-batch. So buffers exist
// only from backward to the optimizer step.
#pragma once

#include "convoy/train/parallel/gradient_hooks.h"
#include "convoy/train/parallel/strategy.h"

namespace convoy::parallel {

class Replicate : public Strategy {
 public:
  explicit Replicate(comm::Group& group);  // throws ConfigError with more than one rank

  void prepare(std::vector<nn::Unit> units) override;
  void begin_micro_batch(MicroBatch which) override;
  void finish_gradients() override;
  const std::vector<ParameterShard>& shards() const override { return shards_; }
  void finish_step() override;
  comm::Group& group() override { return group_; }

 private:
  void add(size_t index, at::Tensor gradient);

  comm::Group& group_;
  // Whole parameters. Only the data of a gradient is replaced, never the tensor, because other code
  // holds the tensor.
  std::vector<ParameterShard> shards_;
  std::vector<bool> touched_;  // by parameter: it has a gradient of this step
  size_t micro_batches_ = 0;   // so far in this step
  bool is_last_ = false;       // the present one
  std::unique_ptr<GradientHooks> hooks_;
};

}  // namespace convoy::parallel
