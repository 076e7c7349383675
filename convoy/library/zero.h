// SPDX-License-Identifier: Apache-2.0
//
// An optimizer whose state the ranks share (ZeRO-1, like torch's ZeroRedundancyOptimizer). Each
// rank steps whole parameters of its own, then all ranks get the new values. For use with
// DistributedDataParallel:
//
//   convoy::ZeroOptimizer<torch::optim::AdamW> optimizer(model.parameters(), group,
//                                                        torch::optim::AdamWOptions(1e-3));
#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <utility>
#include <vector>

#include "convoy/library/detail/ownership.h"
#include "convoy/library/process_group.h"

namespace convoy {

// Use it on one thread. `Optimizer`: any torch::optim optimizer that updates a parameter from its
// own gradient alone (all but LBFGS).
template <class Optimizer>
class ZeroOptimizer {
 public:
  // Collective; blocks. All ranks must give the same parameters in the same order. Throws
  // ConfigError when types or shapes differ between ranks. `options`: the arguments of Optimizer
  // that follow its parameters.
  template <class... Options>
  ZeroOptimizer(std::vector<torch::Tensor> parameters, std::shared_ptr<ProcessGroup> group,
                Options&&... options)
      : ZeroOptimizer(std::vector<torch::optim::OptimizerParamGroup>{std::move(parameters)},
                      std::move(group), std::forward<Options>(options)...) {}
  template <class... Options>
  ZeroOptimizer(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                std::shared_ptr<ProcessGroup> group, Options&&... options)
      : ownership_(groups, std::move(group)),
        own_(ownership_.own_part(groups), std::forward<Options>(options)...) {}

  // Collective; blocks. Steps this rank's parameters, then sends them to all ranks.
  void step() {
    own_.step();
    ownership_.spread();
  }
  void zero_grad(bool set_to_none = true) { ownership_.zero_grad(set_to_none); }
  // The optimizer of the parameters that this rank steps, for learning rates and schedulers. Set
  // the same options on all ranks.
  Optimizer& own() { return own_; }

 private:
  detail::Ownership ownership_;
  Optimizer own_;
};

}  // namespace convoy
