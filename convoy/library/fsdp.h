// SPDX-License-Identifier: Apache-2.0
//
// Every rank keeps one piece of every parameter, its gradient and its optimizer state; an FsdpUnit
// is whole only while it is used (ZeRO-3, arXiv 1910.02054; FSDP, arXiv 2304.11277). FsdpUnit(part)
// is PyTorch's fully_shard(part), FullyShardedDataParallel its fully_shard(model):
//
//   net->push_back(convoy::FsdpUnit(Block(width)));            // in a Sequential or a ModuleList
//   head = register_module("head", convoy::FsdpUnit(torch::nn::Linear(width, 10)));
//
//   convoy::FullyShardedDataParallel model(net, group);
//   torch::optim::AdamW optimizer(model.parameters(), 1e-3);   // after the model
//   auto loss = torch::nll_loss(model(rows), labels);
//   loss.backward();
//   optimizer.step();
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convoy/library/detail/fsdp_unit.h"
#include "convoy/library/detail/module_parts.h"
#include "convoy/library/detail/sharding.h"
#include "convoy/library/no_sync.h"
#include "convoy/library/process_group.h"

namespace convoy {

// The part of one parameter that one rank optimizes: all of it, or a piece of its elements in
// row-major order.
struct ShardView {
  std::string name;            // "blocks.0.weight", as the module without Convoy names it
  std::vector<int64_t> shape;  // the whole parameter's shape
  int64_t begin = 0;           // where the piece begins in the flattened parameter
  torch::Tensor value;         // [elements of the piece]: a leaf that requires grad
};

// The part of the state that lies in the host's memory instead of the GPU's. Optimizer: the pieces
// that the optimizer steps on, their gradients, and so its states. Parameters: the same, and the
// GPU has no piece of a unit between its uses.
enum class Offload { None, Optimizer, Parameters };

// The same on every rank.
struct FullyShardedOptions {
  // False: a unit stays whole from its forward pass to the end of the backward pass. One gather
  // less, for the memory of all units.
  bool reshard_after_forward = true;
  // Units that are gathered while one computes. 0: one on CPUs, two on GPUs.
  int64_t prefetch_units = 0;
  // For GPUs. The optimizer then steps on the CPU.
  Offload offload = Offload::None;
  // So many ranks in a row share parameters, gradients and optimizer states; the next row holds a
  // replica (hybrid shard). group->local_size() keeps gathers within a host. 0: all ranks share.
  int ranks_that_share = 0;
  // The parameters of one type in a unit stay whole on every rank if they have fewer elements. Each
  // rank still optimizes its pieces only.
  int64_t keep_whole_below = 0;
  // The type in which gradients travel: kBFloat16 halves the bytes and rounds them. They add up in
  // fp32. Default: fp32; fp64 and complex for parameters of these types.
  std::optional<torch::ScalarType> gradient_dtype = std::nullopt;
};

// The module in an FsdpUnit. A ModuleList gives it as list[0]->as<convoy::FsdpUnitImpl<Block>>().
template <class Holder>
class FsdpUnitImpl : public detail::UnitBase<Holder> {
 public:
  using detail::UnitBase<Holder>::UnitBase;
};

// A module holder around another one, or around a shared_ptr to a module, for a part of a network
// that FullyShardedDataParallel gathers as one. C++ modules have no hooks, so the network wraps its
// parts where it makes them. forward() takes all arguments of the part's forward(), default ones
// too, and returns tensors, or tuples, lists or maps of them; unit->module() is the part.
// Parameters have the same names as without units; without sharding a unit is its part and no more.
template <class Holder>
class FsdpUnit : public torch::nn::ModuleHolder<FsdpUnitImpl<Holder>> {
 public:
  using torch::nn::ModuleHolder<FsdpUnitImpl<Holder>>::ModuleHolder;
};
template <class Holder>
FsdpUnit(Holder) -> FsdpUnit<Holder>;

// `Holder`: a module holder (as TORCH_MODULE defines them) or a shared_ptr to a module with
// forward(), which returns tensors, or tuples, lists or maps of them. Driven by one thread.
// Collective functions block.
template <class Holder>
class FullyShardedDataParallel {
 public:
  // Collective. The module lies on group->device(). Its parameters and buffers become rank 0's.
  // From here on the module's own parameters have values only within forward, backward and
  // with_whole_parameters(), and never a gradient: any other use of them throws, by their names
  // (a ConfigError where run_rank() reports it). Throws ConfigError when names, shapes or types
  // differ between ranks, nothing requires grad, the module has a wrapper already, options differ
  // between ranks, or one of them cannot be honoured.
  FullyShardedDataParallel(Holder module, std::shared_ptr<ProcessGroup> group,
                           const FullyShardedOptions& options = {})
      : module_(std::move(module)),
        sharding_(std::make_unique<detail::Sharding>(detail::module_pointer(module_),
                                                     std::move(group), options)) {}

  // forward() of the module. Collective, with and without gradients: all ranks use the same units
  // in the same order. So is the backward pass that follows; when it returns, .grad of parameters()
  // holds the mean over ranks, zeros for parameters that no rank has used. A pass with create_graph
  // may only ask for gradients of other tensors; the units stay whole until the next one has ended.
  // Throws ConfigError when parameters were frozen, unfrozen or added since construction. When a
  // backward pass ends, or forward() without gradients, the ranks compare the units that they have
  // used; where these differ all ranks throw CommError, by the units' names.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    sharding_->begin_forward();
    const detail::UnitPass rest(sharding_->rest());
    auto output = module_->forward(std::forward<Arguments>(arguments)...);
    sharding_->end_forward(detail::tensors_in<true>(output));
    return output;
  }
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }
  FullyShardedDataParallel* operator->() { return this; }

  // The pieces of this rank, for an optimizer that treats each element by itself (SGD, Adam, AdamW,
  // RMSprop, Adagrad); with offload they lie on the CPU. A parameter of which this rank holds
  // nothing is not among them. Norms, the largest value and cat() of pieces and of their gradients
  // throw ConfigError: they would differ from the results over whole parameters.
  std::vector<torch::Tensor> parameters() const {
    std::vector<torch::Tensor> values;
    for (const ShardView& shard : shards()) values.push_back(shard.value);
    return values;
  }
  // The same, with names and places.
  std::vector<ShardView> shards() const { return sharding_->shards(); }
  void zero_grad() {
    for (torch::Tensor& value : parameters()) value.mutable_grad() = torch::Tensor();
  }
  // Collective. Scales gradients so that their 2-norm over all ranks is `max_norm` at most. Returns
  // the norm before.
  double clip_grad_norm(double max_norm) { return sharding_->clip_grad_norm(max_norm); }

  // While it lives, forward passes are followed by backward passes whose gradients are kept whole
  // on this rank; the next synchronised one averages all of them. Not `active`: it changes nothing.
  [[nodiscard]] NoSync no_sync(bool active = true) { return NoSync(*sharding_, active); }
  // Collective. Runs `body` while the module's own parameters have their values on every rank, as
  // torch::save(module) needs them. Throws ConfigError when `body` has written into them.
  void with_whole_parameters(const std::function<void()>& body) {
    sharding_->with_whole_parameters(body);
  }

  const Holder& module() const { return module_; }
  void train(bool on = true) { module_->train(on); }
  void eval() { module_->eval(); }
  bool is_training() const { return module_->is_training(); }

 private:
  friend class CheckpointFolder;
  detail::Sharing& sharing() { return *sharding_; }

  Holder module_;
  std::unique_ptr<detail::Sharding> sharding_;
};

}  // namespace convoy
