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
  std::string name;            // "blocks.0.weight", as in the module without Convoy
  std::vector<int64_t> shape;  // shape of the whole parameter
  int64_t begin = 0;           // begin of the piece in the flattened parameter
  torch::Tensor value;         // [elements of the piece], a leaf that requires grad
};

// The state that is kept in the host's memory instead of the GPU's. Optimizer: the pieces that the
// optimizer steps, their gradients and the optimizer's states. Parameters: in addition, the GPU has
// no piece of a unit while the unit is not used.
enum class Offload { None, Optimizer, Parameters };

// All ranks must give the same options.
struct FullyShardedOptions {
  // False: a unit stays whole from its forward pass to the end of the backward pass. This saves one
  // gather per unit, but needs the memory of all units.
  bool reshard_after_forward = true;
  // Number of units that are gathered ahead while one unit computes. 0: one on CPUs, two on GPUs.
  int64_t prefetch_units = 0;
  // Only for GPUs. With offload the optimizer steps on the CPU.
  Offload offload = Offload::None;
  // Number of consecutive ranks that share parameters, gradients and optimizer states. The next
  // ranks hold a replica (hybrid shard). group->local_size() keeps gathers within a host. 0: all
  // ranks share.
  int ranks_that_share = 0;
  // The parameters of one type in a unit stay whole on every rank if together they have fewer
  // elements than this. Each rank still optimizes only its pieces.
  int64_t keep_whole_below = 0;
  // The type in which gradients are sent. kBFloat16 halves the bytes and rounds each gradient; the
  // sum is still computed in fp32. Default: fp32; fp64 and complex for parameters of these types.
  std::optional<torch::ScalarType> gradient_dtype = std::nullopt;
};

// The module in an FsdpUnit. Get it from a ModuleList by
// list[0]->as<convoy::FsdpUnitImpl<Block>>().
template <class Holder>
class FsdpUnitImpl : public detail::UnitBase<Holder> {
 public:
  using detail::UnitBase<Holder>::UnitBase;
};

// A module holder around another holder, or around a shared_ptr to a module. It marks a part of a
// network that FullyShardedDataParallel gathers as one. C++ modules have no hooks, so the network
// wraps its parts where it makes them. forward() takes all arguments of the part's forward(),
// default ones too. It must return tensors, or tuples, lists or maps of tensors. unit->module() is
// the part. Parameters have the same names as without units. Without FullyShardedDataParallel a
// unit behaves like its part.
template <class Holder>
class FsdpUnit : public torch::nn::ModuleHolder<FsdpUnitImpl<Holder>> {
 public:
  using torch::nn::ModuleHolder<FsdpUnitImpl<Holder>>::ModuleHolder;
};
template <class Holder>
FsdpUnit(Holder) -> FsdpUnit<Holder>;

// `Holder`: a module holder (as TORCH_MODULE defines them) or a shared_ptr to a module with
// forward(), which must return tensors, or tuples, lists or maps of tensors. Use it on one thread.
// Collective functions block.
template <class Holder>
class FullyShardedDataParallel {
 public:
  // Collective. The module must be on group->device(). Its parameters and buffers get the values of
  // rank 0. From here on the module's own parameters have values only within forward, backward and
  // with_whole_parameters(), and never a gradient. Any other use of them throws an error with their
  // names (a ConfigError where run_rank() reports it). Throws ConfigError when names, shapes or
  // types differ between ranks, nothing requires grad, the module has a wrapper already, options
  // differ between ranks, or an option cannot be honoured.
  FullyShardedDataParallel(Holder module, std::shared_ptr<ProcessGroup> group,
                           const FullyShardedOptions& options = {})
      : module_(std::move(module)),
        sharding_(std::make_unique<detail::Sharding>(detail::module_pointer(module_),
                                                     std::move(group), options)) {}

  // Calls forward() of the module. Collective, with and without gradients: all ranks must use the
  // same units in the same order. The backward pass that follows is collective too. When it
  // returns, .grad of parameters() holds the mean over ranks, and zeros for parameters that no rank
  // has used. A pass with create_graph may only ask for gradients of other tensors; the units then
  // stay whole until the next pass has ended. Throws ConfigError when parameters were frozen,
  // unfrozen or added since construction. Before a unit is gathered, the ranks compare its number:
  // if they use different units, all of them throw CommError with the units' names.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    sharding_->begin_forward();
    const detail::UnitPass rest(sharding_->rest());
    auto output = module_->forward(std::forward<Arguments>(arguments)...);
    sharding_->watch_backward(detail::tensors_in<true>(output));
    return output;
  }
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }
  FullyShardedDataParallel* operator->() { return this; }

  // The pieces of this rank, for an optimizer that treats each element by itself (SGD, Adam, AdamW,
  // RMSprop, Adagrad). With offload they are on the CPU. A parameter of which this rank holds
  // nothing is left out. Norms, the largest value and cat() of pieces and of their gradients throw
  // ConfigError, because they would differ from the results over whole parameters.
  std::vector<torch::Tensor> parameters() const {
    std::vector<torch::Tensor> values;
    for (const ShardView& shard : shards()) values.push_back(shard.value);
    return values;
  }
  // The pieces of parameters(), with names and positions.
  std::vector<ShardView> shards() const { return sharding_->shards(); }
  void zero_grad() {
    for (torch::Tensor& value : parameters()) value.mutable_grad() = torch::Tensor();
  }
  // Collective. Scales the gradients so that their 2-norm over all ranks is at most `max_norm`.
  // Returns the norm before scaling.
  double clip_grad_norm(double max_norm) { return sharding_->clip_grad_norm(max_norm); }

  // While the returned object exists, a forward pass is followed by a backward pass whose gradients
  // stay whole on this rank. The next synchronised backward pass averages all of these gradients.
  // `active` = false: the object has no effect.
  [[nodiscard]] NoSync no_sync(bool active = true) { return NoSync(*sharding_, active); }
  // Collective. Runs `body` while the module's own parameters have their values on every rank, for
  // uses such as torch::save(module). Throws ConfigError when `body` has changed the values.
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
