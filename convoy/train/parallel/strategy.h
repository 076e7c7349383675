// SPDX-License-Identifier: Apache-2.0
//
// The division of a step's work among ranks, as the training loop uses it. Driven by the one thread
// that runs autograd. A strategy's life:
//
//   strategy->prepare(units);
//   model.set_residency(strategy->residency());
//   for each step {
//     for each micro-batch {
//       strategy->begin_micro_batch(is_last ? MicroBatch::Last : MicroBatch::More);
//       loss(rows of this rank).backward();   // at most once; not at all without rows
//     }
//     strategy->finish_gradients();
//     ...                                     // clip and step over strategy->shards()
//     strategy->finish_step();
//     strategy->settle();                       // where parameters are read outside of passes
//   }
//
// Every rank goes through the same calls in the same order. The loss is already divided by the
// supervised tokens of the global batch, so gradients are SUMS over ranks and micro-batches.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "convoy/core/settings/train_settings.h"
#include "convoy/model/nn/deferred_values.h"
#include "convoy/model/nn/unit.h"
#include "convoy/train/comm/group.h"

namespace convoy::parallel {

// The part of one parameter that one rank optimizes: all of it, or a piece of its elements in
// row-major order.
struct ParameterShard {
  std::string name;
  std::vector<int64_t> shape;  // the whole parameter's shape
  int64_t begin = 0;           // where the piece begins in the flattened parameter
  at::Tensor value;     // the parameter itself where it is whole, else [elements of the piece]
  at::Tensor gradient;  // in the value's shape; fp32, or bf16 where nothing was summed
};

enum class MicroBatch { More, Last };  // Last: the step's last on this and on every rank

class Strategy {
 public:
  virtual ~Strategy() = default;

  // Collective. Gives every rank the values of rank 0 for every trained parameter and buffer, and
  // takes over where backward puts gradients: the parameters' own .grad stays undefined. Trained
  // parameters are leaves that require grad, fp32 or bf16. Call once. Throws ConfigError when
  // names, shapes or dtypes differ between ranks.
  virtual void prepare(std::vector<nn::Unit> units) = 0;
  // prepare() for a model that was made without values, if shards_values() allows it: each rank
  // reads its parts of `values`, which are the same on every rank.
  virtual void prepare_deferred(std::vector<nn::Unit> units, const nn::DeferredValues& values);

  // The parameters and pieces that this rank optimizes. They stay the same tensors from prepare()
  // on, so an optimizer may hold them. Gradients are valid from finish_gradients() to finish_step()
  // and may be changed in place; their storage may move in finish_gradients().
  virtual const std::vector<ParameterShard>& shards() const = 0;

  // The number of ranks that have a given element of a parameter in their shards; all of them hold
  // the same gradient for it. A sum over the shards of all ranks counts each element that many
  // times.
  virtual int num_owners() { return world(); }

  // Several ranks may hold the same shards. True on the one of them that writes the shards into
  // checkpoints.
  virtual bool writes_shards() const { return true; }

  // The object to notify of the use of units; null: none. Valid from prepare() on.
  virtual nn::Residency* residency() { return nullptr; }

  // True: every rank holds the values of all trained parameters between passes. False: a rank holds
  // them only while residency() has acquired them.
  virtual bool values_are_whole() const { return true; }

  // Call it before the forward pass of each micro-batch. With Last, gradients may be sent while
  // backward runs: it is then collective together with finish_gradients(). A rank without rows for
  // a micro-batch calls this and runs no backward, unless the residency is collective.
  virtual void begin_micro_batch(MicroBatch which) = 0;

  // Collective. Call it after the last micro-batch. Blocks until the shards hold the sums over
  // ranks; the gradients of parameters that got none are zeros.
  virtual void finish_gradients() = 0;

  // Collective. Call it after the optimizer has stepped: the next pass sees the new values on every
  // rank, buffers have rank 0's values, and gradients are empty again. The values may still be on
  // their way: only passes that notify residency() see them without settle().
  virtual void finish_step() = 0;

  // If values_are_whole(), code that does not notify residency() may read the parameters after
  // settle(). Not collective.
  virtual void settle() {}

  // The group of the ranks, for sums of metrics, stop votes and checkpoints.
  virtual comm::Group& group() = 0;

  // True: each rank holds only parts of the training state, so every rank saves and loads its own.
  bool shares_state() { return num_owners() < world() || !values_are_whole(); }

  int rank() { return group().rank(); }
  int world() { return group().size(); }
};

// In the order of shards().
std::vector<at::Tensor> gradients_of(const std::vector<ParameterShard>& shards);

// True: each rank holds only a part of the parameters' values, so a model may come without memory.
bool shards_values(const settings::ParallelSettings& settings);

// `settings.strategy`: auto = ddp with more than one rank, else none. Throws ConfigError: none with
// more than one rank; settings that the strategy cannot honour. `ranks_of_node`: the number of
// ranks on each node; 0 = all ranks are on one node. Collective.
std::unique_ptr<Strategy> make_strategy(const settings::ParallelSettings& settings,
                                        comm::Group& group, int ranks_of_node = 0);

}  // namespace convoy::parallel
