// SPDX-License-Identifier: Apache-2.0
//
// `ddp`: every rank holds the whole model; gradients are summed in buckets while the last
// micro-batch's backward runs.
//
// The buckets follow the order in which the first backward pass of rank 0 makes gradients ready.
// The reversed list of parameters has another order: a module trained whole is listed last and may
// still be ready last. The buckets are laid out at the end of the first step, before anything was
// sent, so the first step alone does not overlap with backward. All steps of a run, and of the runs
// that continue it, use one layout, because with three ranks or more Gloo adds up an element in an
// order that depends on its place in the buffer.
#pragma once

#include "convoy/train/parallel/ddp/grad_reducer.h"
#include "convoy/train/parallel/gradient_hooks.h"
#include "convoy/train/parallel/replicated_buffers.h"
#include "convoy/train/parallel/strategy.h"

namespace convoy::parallel {

class Ddp : public Strategy {
 public:
  // `wire`: as for GradReducer.
  Ddp(comm::Group& group, int64_t bucket_bytes, std::optional<at::ScalarType> wire = std::nullopt);

  void prepare(std::vector<nn::Unit> units) override;
  void begin_micro_batch(MicroBatch which) override;
  void finish_gradients() override;
  const std::vector<ParameterShard>& shards() const override { return shards_; }
  void finish_step() override;
  comm::Group& group() override { return group_; }

 private:
  void add(size_t index, const at::Tensor& gradient);
  void lay_out_buckets();  // Collective

  comm::Group& group_;
  int64_t bucket_bytes_;
  const std::optional<at::ScalarType> wire_;
  ReplicatedBuffers buffers_;
  std::vector<ParameterShard> shards_;    // whole parameters
  std::vector<size_t> arrivals_;          // in the first step: gradients by their first arrival
  std::unique_ptr<GradReducer> reducer_;  // from the end of the first step on
  std::vector<bool> touched_;             // by parameter: its buffer holds a gradient of this step
  bool last_ = false;                     // the running micro-batch is the step's last
  std::unique_ptr<GradientHooks> hooks_;
};

}  // namespace convoy::parallel
