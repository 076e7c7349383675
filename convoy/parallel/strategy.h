// SPDX-License-Identifier: Apache-2.0
//
// How ranks share the work of a step, as the training loop sees it. Driven by the thread that runs
// autograd.
//
//   strategy->prepare(parameters);
//   for each step:
//     for each micro-batch: strategy->begin_micro_batch(last ? MicroBatch::Last :
//     MicroBatch::More); loss.backward(); strategy->finish_gradients();  clip and step over
//     strategy->gradients();  strategy->reset_gradients();
//
// The loss is already divided by the supervised tokens of the global batch, so gradients are SUMS
// over ranks and micro-batches.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "convoy/comm/group.h"
#include "convoy/settings/train_settings.h"

namespace convoy::parallel {

struct TrainableParameter {
  std::string name;
  at::Tensor value;  // leaf that requires grad, fp32 or bf16
};

enum class MicroBatch { More, Last };

class Strategy {
 public:
  virtual ~Strategy() = default;

  // Collective. Makes the values of every rank those of rank 0 and attaches the gradient buffers.
  // Call once. Throws ConfigError when names, shapes or dtypes differ between ranks.
  virtual void prepare(std::vector<TrainableParameter> parameters) = 0;

  // Before the forward pass of each micro-batch. With Last, buffers are sent while backward runs. A
  // rank without rows for a micro-batch calls this and runs no backward. One backward call per
  // micro-batch.
  virtual void begin_micro_batch(MicroBatch which) = 0;

  // Collective. Blocks until gradients() holds the sums over ranks; parameters that got no gradient
  // have zeros.
  virtual void finish_gradients() = 0;

  // fp32, in prepare()'s order, each of its parameter's shape. The tensors are the same from prepare() on, so an
  // optimizer may hold them; their values are valid from finish_gradients() to reset_gradients() and may be changed in
  // place.
  virtual const std::vector<at::Tensor>& gradients() const = 0;

  // After the optimizer step: gradients are empty again.
  virtual void reset_gradients() = 0;

  // The group behind it, for sums of metrics, stop votes and checkpoints.
  virtual comm::Group& group() = 0;

  int rank() { return group().rank(); }
  int world() { return group().size(); }
};

// `settings.strategy`: auto = ddp with more than one rank, else none. Throws ConfigError: none with
// more than one rank.
std::unique_ptr<Strategy> make_strategy(const settings::ParallelSettings& settings,
                                        comm::Group& group);

}  // namespace convoy::parallel
