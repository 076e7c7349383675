// SPDX-License-Identifier: Apache-2.0
//
// Every rank holds the whole module and sees other rows; when backward returns, .grad of every
// parameter is the mean over ranks. Use it as torch.nn.parallel.DistributedDataParallel:
//
//   convoy::DistributedDataParallel model(net, group);
//   torch::optim::Adam optimizer(model.parameters(), 1e-3);
//   auto loss = torch::nll_loss(model(rows), labels);
//   loss.backward();      // sums gradients over ranks while it runs
//   optimizer.step();
#pragma once

#include <torch/nn/module.h>
#include <torch/ordered_dict.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "convoy/library/detail/module_parts.h"
#include "convoy/library/detail/replication.h"
#include "convoy/library/no_sync.h"
#include "convoy/library/process_group.h"

namespace convoy {

struct DistributedDataParallelOptions {
  double bucket_cap_mb = 25;  // gradients that travel together, in MiB
  // Before a training forward pass that follows a synchronised one, rank 0's buffers go to all.
  bool broadcast_buffers = true;
  // A backward pass may leave parameters out, other ones on each rank. Without it that is an error.
  bool find_unused_parameters = false;
  // .grad is a view of the memory that travels: one copy less, but a gradient that was kept changes
  // with the next backward pass.
  bool gradient_as_bucket_view = false;
};

// `Holder`: a module holder (as TORCH_MODULE defines them) or a shared_ptr to a module with
// forward(). Driven by one thread. Functions are collective only where marked; these block.
template <class Holder>
class DistributedDataParallel {
 public:
  // Collective. The module lies on group->device(). Its parameters and buffers become rank 0's.
  // Throws ConfigError when names, shapes or types differ between ranks, nothing requires grad, or
  // the module or a part of it has a wrapper already.
  DistributedDataParallel(Holder module, std::shared_ptr<ProcessGroup> group,
                          const DistributedDataParallelOptions& options = {})
      : module_(std::move(module)),
        replication_(std::make_unique<detail::Replication>(detail::module_pointer(module_),
                                                           std::move(group), options)) {}

  // forward() of the module. Collective in training mode with gradients when there are buffers to
  // broadcast. The backward pass that follows is collective, unless a NoSync lived during this
  // call; it throws ConfigError when it leaves parameters out without find_unused_parameters, and
  // with create_graph. Throws ConfigError when parameters were unfrozen or added since
  // construction.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    replication_->before_forward();
    return module_->forward(std::forward<Arguments>(arguments)...);
  }
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }
  DistributedDataParallel* operator->() { return this; }

  // While it lives, forward passes are followed by backward passes that only add to .grad of this
  // rank; the first synchronised one averages all of it. Not `active`: it changes nothing.
  [[nodiscard]] NoSync no_sync(bool active = true) { return NoSync(*replication_, active); }
  // Collective. Buffers become rank 0's, for ranks that evaluate with them.
  void broadcast_buffers() { replication_->broadcast_buffers(); }

  const Holder& module() const { return module_; }
  std::vector<torch::Tensor> parameters() const { return module_->parameters(); }
  torch::OrderedDict<std::string, torch::Tensor> named_parameters() const {
    return module_->named_parameters();
  }
  void zero_grad(bool set_to_none = true) { module_->zero_grad(set_to_none); }
  void train(bool on = true) { module_->train(on); }
  void eval() { module_->eval(); }
  bool is_training() const { return module_->is_training(); }

 private:
  friend class CheckpointFolder;
  detail::Sharing& sharing() { return *replication_; }

  Holder module_;
  std::unique_ptr<detail::Replication> replication_;
};

}  // namespace convoy
