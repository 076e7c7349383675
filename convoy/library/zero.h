// SPDX-License-Identifier: Apache-2.0
//
// An optimizer whose state the ranks share (ZeRO-1, as torch's ZeroRedundancyOptimizer): each steps
// whole parameters of its own, then all get the new values. For use with DistributedDataParallel:
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

// Driven by one thread. `Optimizer`: any torch::optim optimizer that needs of a parameter no more
// than its own gradient (all but LBFGS).
template <class Optimizer>
class ZeroOptimizer {
 public:
  // Collective; blocks. All ranks give the same parameters in the same order: throws ConfigError
  // where types or shapes differ between ranks. `options`: the arguments of Optimizer behind its
  // parameters.
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

  // Collective; blocks.
  void step() {
    own_.step();
    ownership_.spread();
  }
  void zero_grad(bool set_to_none = true) { ownership_.zero_grad(set_to_none); }
  // The optimizer of the parameters that this rank steps, for learning rates and schedulers: give
  // all ranks the same options.
  Optimizer& own() { return own_; }

 private:
  detail::Ownership ownership_;
  Optimizer own_;
};

}  // namespace convoy
