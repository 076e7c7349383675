// SPDX-License-Identifier: Apache-2.0
//
// Says for each parameter of a ZeroOptimizer which rank steps it.
#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <vector>

namespace convoy {

class ProcessGroup;

namespace detail {

class Ownership {
 public:
  // Collective. Takes the largest parameters first, and gives each to the rank that has the fewest
  // bytes so far. The result is equal on every rank.
  Ownership(const std::vector<torch::optim::OptimizerParamGroup>& groups,
            std::shared_ptr<ProcessGroup> group);

  // The groups with their options, reduced to the parameters of this rank.
  std::vector<torch::optim::OptimizerParamGroup> own_part(
      const std::vector<torch::optim::OptimizerParamGroup>& groups) const;
  // Collective. Every rank gets each parameter from the rank that steps it.
  void spread();
  void zero_grad(bool set_to_none);  // for all parameters

 private:
  void require_same_shapes();  // Collective
  bool is_own(const torch::Tensor& parameter) const;

  std::vector<torch::Tensor> parameters_;
  std::vector<std::vector<torch::Tensor>> by_rank_;
  std::shared_ptr<ProcessGroup> group_;
};

}  // namespace detail
}  // namespace convoy
