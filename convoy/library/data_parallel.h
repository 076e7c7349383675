// SPDX-License-Identifier: Apache-2.0
//
// One process, a replica of the module and a thread for each device; a CPU may stand several times.
// The replicas stay from step to step. For one process per device, which is faster, see
// DistributedDataParallel.
//
//   convoy::DataParallel model(net, {torch::kCPU, torch::kCPU});
//   auto loss = torch::nll_loss(model(rows), labels);   // rows are dealt to the replicas
//   loss.backward();                                    // .grad of net's parameters
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "convoy/library/module_parts.h"

namespace convoy {
namespace library {

// What DataParallel does, of whatever type its module is.
class Replicas {
 public:
  // The first is the module itself.
  Replicas(std::vector<std::shared_ptr<torch::nn::Module>> modules,
           std::vector<torch::Device> devices);
  ~Replicas();

  // Before a forward pass: replicas get the values of the module. `inputs` are cut by rows; returns
  // those of each replica that has some.
  std::vector<std::vector<torch::Tensor>> deal(const std::vector<torch::Tensor*>& inputs);
  // Runs body(replica) for the first `count` at once, each on its thread. Throws what the first one
  // to fail throws.
  void run(size_t count, const std::function<void(size_t replica)>& body);
  // `joined` become the outputs of the replicas, one after another, with a backward pass that runs
  // those of the replicas at once. `dealt`: what deal() gave.
  void join(const std::vector<torch::Tensor*>& inputs,
            const std::vector<std::vector<torch::Tensor>>& dealt,
            const std::vector<std::vector<torch::Tensor>>& outputs,
            const std::vector<torch::Tensor*>& joined);
  void train(bool on);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

std::vector<std::shared_ptr<torch::nn::Module>> replicas_of(
    const std::shared_ptr<torch::nn::Module>& module, const std::vector<torch::Device>& devices);

}  // namespace library

// `Holder`: a module holder (what TORCH_MODULE defines) or a shared_ptr to a module that can be
// cloned (torch::nn::Cloneable). Driven by one thread.
template <class Holder>
class DataParallel {
 public:
  // The module lies on the first device.
  DataParallel(Holder module, std::vector<torch::Device> devices)
      : module_(std::move(module)),
        modules_(library::replicas_of(library::module_pointer(module_), devices)),
        replicas_(modules_, std::move(devices)) {}

  // forward() of every replica on its rows: tensor arguments are cut along their first dimension,
  // what else is copied. Returns what they return, tensors joined along the first dimension; a
  // number of each replica, such as a loss, becomes a row of the result. With fewer rows than
  // replicas some of these rest. Buffers of the module change as those of the first replica.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    using Own = std::tuple<std::decay_t<Arguments>...>;
    using Result = decltype(module_->forward(std::declval<std::decay_t<Arguments>&>()...));
    Own whole(std::forward<Arguments>(arguments)...);
    const auto inputs = library::tensors_in<false>(whole);
    const auto dealt = replicas_.deal(inputs);
    std::vector<std::optional<std::decay_t<Result>>> results(dealt.size());
    replicas_.run(dealt.size(), [&](size_t replica) {
      Own own = whole;
      const auto places = library::tensors_in<false>(own);
      for (size_t at = 0; at < places.size(); ++at) *places[at] = dealt[replica][at];
      auto& module = static_cast<library::ModuleOf<Holder>&>(*modules_[replica]);
      results[replica].emplace(
          std::apply([&](auto&... values) { return module.forward(values...); }, own));
    });
    std::vector<std::vector<torch::Tensor>> outputs;
    for (auto& result : results) {
      outputs.emplace_back();
      for (torch::Tensor* tensor : library::tensors_in<true>(*result))
        outputs.back().push_back(*tensor);
    }
    std::decay_t<Result> joined = std::move(*results.front());
    replicas_.join(inputs, dealt, outputs, library::tensors_in<true>(joined));
    return joined;
  }
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }
  DataParallel* operator->() { return this; }

  const Holder& module() const { return module_; }
  std::vector<torch::Tensor> parameters() const { return module_->parameters(); }
  void zero_grad(bool set_to_none = true) { module_->zero_grad(set_to_none); }
  void train(bool on = true) { replicas_.train(on); }
  void eval() { train(false); }
  bool is_training() const { return module_->is_training(); }

 private:
  Holder module_;
  std::vector<std::shared_ptr<torch::nn::Module>> modules_;
  library::Replicas replicas_;
};

}  // namespace convoy
