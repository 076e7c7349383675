// SPDX-License-Identifier: Apache-2.0
//
// How ranks share the work of a step, as the training loop sees it. Driven by the one thread that
// runs autograd. A strategy's life:
//
//   strategy->prepare(parameters);
//   for each step {
//     for each micro-batch {
//       strategy->begin_micro_batch(is_last ? MicroBatch::Last : MicroBatch::More);
//       loss(rows of this rank).backward();   // at most once; not at all without rows
//     }
//     strategy->finish_gradients();
//     ...                                     // clip and step over strategy->gradients()
//     strategy->reset_gradients();
//   }
//
// Every rank goes through the same calls in the same order. The loss is already divided by the
// supervised tokens of the global batch, so gradients are SUMS over ranks and micro-batches.
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

enum class MicroBatch { More, Last };  // Last: the step's last on this and on every rank

class Strategy {
 public:
  virtual ~Strategy() = default;

  // Collective. Makes the values of every rank those of rank 0 and takes over where backward puts
  // gradients: the parameters' own .grad stays undefined. Call once. Throws ConfigError when names,
  // shapes or dtypes differ between ranks.
  virtual void prepare(std::vector<TrainableParameter> parameters) = 0;

  // Before the forward pass of each micro-batch. With Last, gradients may be sent while backward
  // runs: it is then collective together with finish_gradients(). A rank without rows for a
  // micro-batch calls this and runs no backward.
  virtual void begin_micro_batch(MicroBatch which) = 0;

  // Collective. After the last micro-batch. Blocks until gradients() holds the sums over ranks;
  // parameters that got no gradient have zeros.
  virtual void finish_gradients() = 0;

  // fp32, in prepare()'s order, each of its parameter's shape. The tensors are the same from
  // prepare() on, so an optimizer may hold them; their storage may move in finish_gradients(). Their
  // values are valid from finish_gradients() to reset_gradients() and may be changed in place.
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
