// SPDX-License-Identifier: Apache-2.0
//
// `ddp`: every rank holds the whole model; gradients are summed in buckets while the last micro-batch's backward runs.
#pragma once

#include "convoy/parallel/ddp/grad_reducer.h"
#include "convoy/parallel/gradient_hooks.h"
#include "convoy/parallel/strategy.h"

namespace convoy::parallel {

class Ddp : public Strategy {
 public:
  Ddp(comm::Group& group, int64_t bucket_bytes);

  void prepare(std::vector<TrainableParameter> parameters) override;
  void begin_micro_batch(MicroBatch which) override;
  void finish_gradients() override;
  const std::vector<at::Tensor>& gradients() const override { return reducer_->gradients(); }
  void reset_gradients() override;
  comm::Group& group() override { return group_; }

 private:
  void add(size_t index, const at::Tensor& gradient);

  comm::Group& group_;
  int64_t bucket_bytes_;
  std::unique_ptr<GradReducer> reducer_;
  std::vector<bool> touched_;  // by parameter: its buffer holds a gradient of this step
  bool last_ = false;          // the running micro-batch is the step's last
  std::unique_ptr<GradientHooks> hooks_;
};

}  // namespace convoy::parallel
