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

#include "convoy/library/process_group.h"

namespace convoy {
namespace library {

// Which rank steps which parameter.
class Ownership {
 public:
  // The largest first, each to the rank that has least; equal on every rank.
  Ownership(std::vector<torch::Tensor> parameters, std::shared_ptr<ProcessGroup> group);

  bool is_own(const torch::Tensor& parameter) const;
  // Collective. Parameters become those of the ranks that step them.
  void spread();
  const std::vector<torch::Tensor>& parameters() const { return parameters_; }
  ProcessGroup& group() { return *group_; }

 private:
  void require_same_shapes();  // Collective
  std::vector<torch::Tensor> parameters_;
  std::vector<std::vector<torch::Tensor>> by_rank_;
  std::shared_ptr<ProcessGroup> group_;
};

std::vector<torch::Tensor> parameters_of_groups(
    const std::vector<torch::optim::OptimizerParamGroup>& groups);
// The groups with their options, and of their parameters those that are this rank's.
std::vector<torch::optim::OptimizerParamGroup> own_part(
    const std::vector<torch::optim::OptimizerParamGroup>& groups, const Ownership& ownership);

}  // namespace library

// Driven by one thread. `Optimizer`: any torch::optim optimizer that needs of a parameter no more
// than its own gradient (all but LBFGS).
template <class Optimizer>
class ZeroOptimizer {
 public:
  // Collective. All ranks give the same parameters in the same order; what differs in type or shape
  // throws. `options`: what Optimizer takes after its
  // parameters.
  template <class... Options>
  ZeroOptimizer(std::vector<torch::Tensor> parameters, std::shared_ptr<ProcessGroup> group,
                Options&&... options)
      : ZeroOptimizer(std::vector<torch::optim::OptimizerParamGroup>{std::move(parameters)},
                      std::move(group), std::forward<Options>(options)...) {}
  template <class... Options>
  ZeroOptimizer(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                std::shared_ptr<ProcessGroup> group, Options&&... options)
      : ownership_(library::parameters_of_groups(groups), std::move(group)),
        own_(library::own_part(groups, ownership_), std::forward<Options>(options)...) {}

  // Collective.
  void step() {
    own_.step();
    ownership_.spread();
  }
  void zero_grad(bool set_to_none = true) {
    for (torch::Tensor parameter : ownership_.parameters()) {
      if (set_to_none)
        parameter.mutable_grad() = torch::Tensor();
      else if (parameter.grad().defined())
        parameter.mutable_grad().zero_();
    }
  }
  // Of the parameters that this rank steps, for learning rates and schedulers: give all ranks the
  // same options.
  Optimizer& own() { return own_; }

 private:
  library::Ownership ownership_;
  Optimizer own_;
};

}  // namespace convoy
