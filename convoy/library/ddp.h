// SPDX-License-Identifier: Apache-2.0
//
// Every rank holds the whole module and sees different rows. When backward returns, .grad of every
// parameter is the mean over ranks. Use it like torch.nn.parallel.DistributedDataParallel:
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
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convoy/library/detail/module_parts.h"
#include "convoy/library/detail/replication.h"
#include "convoy/library/no_sync.h"
#include "convoy/library/process_group.h"

namespace convoy {

// All ranks must give the same options.
struct DistributedDataParallelOptions {
  double bucket_cap_mb = 25;  // size of the buckets in which gradients are sent, in MiB
  // The buffers of rank 0 are sent to all ranks before a training forward pass, if the forward pass
  // before it was synchronised.
  bool broadcast_buffers = true;
  // A backward pass may leave parameters out, and different ones on each rank. Without this option
  // it is an error to leave a parameter out.
  bool find_unused_parameters = false;
  // .grad is a view of the memory that is sent. This saves one copy, but the next backward pass
  // changes a gradient that the program has kept.
  bool gradient_as_bucket_view = false;
  // The type in which gradients are sent and added up. kBFloat16 halves the bytes of fp32, and
  // rounds each gradient and each addition. Default: the type of each gradient.
  std::optional<torch::ScalarType> gradient_dtype = std::nullopt;
};

// `Holder`: a module holder (as TORCH_MODULE defines them) or a shared_ptr to a module with
// forward(). Use it on one thread. Only functions that are marked "Collective" are collective, and
// these block.
template <class Holder>
class DistributedDataParallel {
 public:
  // Collective. The module must be on group->device(). Its parameters and buffers get the values of
  // rank 0. Throws ConfigError when names, shapes or types differ between ranks, when nothing
  // requires grad, when the module or a part of it has a wrapper already, when options differ
  // between ranks, and when an option cannot be honoured.
  DistributedDataParallel(Holder module, std::shared_ptr<ProcessGroup> group,
                          const DistributedDataParallelOptions& options = {})
      : module_(std::move(module)),
        replication_(std::make_unique<detail::Replication>(detail::module_pointer(module_),
                                                           std::move(group), options)) {}

  // Calls forward() of the module. Collective in training mode with gradients when there are
  // buffers to broadcast. The backward pass that follows is collective, unless a NoSync existed
  // during this call. That pass throws ConfigError with create_graph, and when it leaves parameters
  // out without find_unused_parameters. forward() throws ConfigError when parameters were unfrozen
  // or added since construction.
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

  // While the returned object exists, a forward pass is followed by a backward pass that only adds
  // to .grad of this rank. The first synchronised backward pass averages all of these gradients.
  // `active` = false: the object has no effect.
  [[nodiscard]] NoSync no_sync(bool active = true) { return NoSync(*replication_, active); }
  // Collective. All buffers get the values of rank 0, for ranks that evaluate with them.
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
