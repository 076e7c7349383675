// SPDX-License-Identifier: Apache-2.0
//
// Implements DataParallel: the replicas of a module on their devices.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "convoy/library/detail/module_parts.h"

namespace convoy::detail {

class Replicas {
 public:
  // The first replica is the module itself.
  Replicas(const std::shared_ptr<torch::nn::Module>& module,
           const std::vector<torch::Device>& devices);
  ~Replicas();

  // Calls forward() of all replicas and joins their results. `Module`: the type of the module.
  template <class Module, class... Arguments>
  auto forward(Arguments&&... arguments) {
    using Result = std::decay_t<decltype(std::declval<Module&>().forward(
        std::declval<std::decay_t<Arguments>&>()...))>;
    std::tuple<std::decay_t<Arguments>...> whole(std::forward<Arguments>(arguments)...);
    const auto inputs = tensors_in<false>(whole);
    const auto dealt = deal(inputs);
    std::vector<std::optional<Result>> results(dealt.size());
    run(dealt.size(), [&](size_t replica) {
      auto own = whole;
      const auto places = tensors_in<false>(own);
      for (size_t at = 0; at < places.size(); ++at) *places[at] = dealt[replica][at];
      auto& replica_module = static_cast<Module&>(module(replica));
      results[replica].emplace(
          std::apply([&](auto&... values) { return replica_module.forward(values...); }, own));
    });
    std::vector<std::vector<torch::Tensor>> outputs;
    for (auto& result : results) {
      outputs.emplace_back();
      for (torch::Tensor* tensor : tensors_in<true>(*result)) outputs.back().push_back(*tensor);
    }
    Result joined = std::move(*results.front());
    join(inputs, dealt, outputs, tensors_in<true>(joined));
    return joined;
  }
  void train(bool on);

 private:
  torch::nn::Module& module(size_t replica);
  // Called before a forward pass. Gives the replicas the values of the module, and cuts `inputs` by
  // rows. Returns the inputs of each replica that has rows.
  std::vector<std::vector<torch::Tensor>> deal(const std::vector<torch::Tensor*>& inputs);
  // Runs body(replica) for the first `count` replicas at once, each on its thread. Throws the error
  // of the first replica that failed.
  void run(size_t count, const std::function<void(size_t replica)>& body);
  // `joined` get the outputs of the replicas, one after another. The backward pass of `joined`
  // runs the backward passes of the replicas at once. `dealt`: the result of deal().
  void join(const std::vector<torch::Tensor*>& inputs,
            const std::vector<std::vector<torch::Tensor>>& dealt,
            const std::vector<std::vector<torch::Tensor>>& outputs,
            const std::vector<torch::Tensor*>& joined);

  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace convoy::detail
