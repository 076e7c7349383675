// SPDX-License-Identifier: Apache-2.0
//
// Every rank keeps one piece of every parameter, its gradient and its optimizer state; a unit
// (convoy/library/unit.h) is whole only while it is used (ZeRO-3, arXiv 1910.02054; FSDP,
// arXiv 2304.11277):
//
//   convoy::FullyShardedDataParallel model(net, group);
//   torch::optim::AdamW optimizer(model.parameters(), 1e-3);   // after the model
//   auto loss = torch::nll_loss(model(rows), labels);
//   loss.backward();
//   optimizer.step();
#pragma once

#include <torch/nn/module.h>
#include <torch/ordered_dict.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "convoy/library/module_parts.h"
#include "convoy/library/process_group.h"
#include "convoy/library/sharing.h"
#include "convoy/library/unit.h"

namespace convoy {
namespace library {

// What FullyShardedDataParallel does, of whatever type its module is.
class Sharding : public Sharing {
 public:
  Sharding(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<ProcessGroup> group);
  ~Sharding() override;

  const UnitCore& rest();  // the parameters that are in no unit
  void begin_forward();
  void watch_backward(const std::vector<torch::Tensor*>& outputs);
  void with_whole_parameters(const std::function<void()>& body);
  double clip_grad_norm(double max_norm);
  void set_synchronised(bool synchronised) override;
  bool synchronised() const override;
  ProcessGroup& group() override;
  std::vector<ShardView> shards();  // those that train
  std::vector<ShardView> stored_shards() override;
  torch::OrderedDict<std::string, torch::Tensor> buffers() override;
  bool replicated() const override { return false; }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace library

// `Holder`: a module holder (what TORCH_MODULE defines) or a shared_ptr to a module with forward(),
// which returns tensors, or tuples, lists or maps of them. Driven by one thread.
template <class Holder>
class FullyShardedDataParallel {
 public:
  // Collective. The module lies on group->device(). Its parameters and buffers become rank 0's.
  // From here on the module's own parameters have values only within forward, backward and
  // with_whole_parameters(). Throws when names, shapes or types differ between ranks.
  FullyShardedDataParallel(Holder module, std::shared_ptr<ProcessGroup> group)
      : module_(std::move(module)),
        sharding_(std::make_unique<library::Sharding>(library::module_pointer(module_),
                                                      std::move(group))) {}

  // forward() of the module. Collective, with and without gradients: all ranks use the same units in
  // the same order. So is the backward pass that follows; when it returns, .grad of parameters()
  // holds the mean over ranks, zeros for what no rank has used.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    sharding_->begin_forward();
    const library::UnitPass rest(sharding_->rest());
    auto output = module_->forward(std::forward<Arguments>(arguments)...);
    sharding_->watch_backward(library::tensors_in<true>(output));
    return output;
  }
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }
  FullyShardedDataParallel* operator->() { return this; }

  // The pieces of this rank, for an optimizer that treats each element by itself (SGD, Adam, AdamW,
  // RMSprop, Adagrad). A parameter of which this rank holds nothing is not among them.
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

  // While it lives, forward passes are followed by backward passes whose gradients are kept whole on
  // this rank; the next synchronised one averages all of them.
  [[nodiscard]] NoSync no_sync() { return NoSync(*sharding_); }
  // Collective. Runs `body` while the module's own parameters have their values on every rank, as
  // torch::save(module) wants them. What `body` writes into them is lost.
  void with_whole_parameters(const std::function<void()>& body) {
    sharding_->with_whole_parameters(body);
  }

  const Holder& module() const { return module_; }
  void train(bool on = true) { module_->train(on); }
  void eval() { module_->eval(); }
  bool is_training() const { return module_->is_training(); }

  library::Sharing& sharing() { return *sharding_; }

 private:
  Holder module_;
  std::unique_ptr<library::Sharding> sharding_;
};

}  // namespace convoy
