// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/detail/ownership.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "convoy/core/base/error.h"
#include "convoy/library/internal/coalesced.h"
#include "convoy/library/internal/group_internal.h"

namespace convoy::detail {

Ownership::Ownership(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                     std::shared_ptr<ProcessGroup> group)
    : group_(required(std::move(group))) {
  for (const torch::optim::OptimizerParamGroup& each : groups)
    parameters_.insert(parameters_.end(), each.params().begin(), each.params().end());
  if (parameters_.empty())
    throw ConfigError("ZeroOptimizer was given no parameters",
                      {.hint = "make it of the wrapper's parameters()"});
  require_same_shapes();
  by_rank_.resize(static_cast<size_t>(group_->size()));
  std::vector<at::Tensor> largest_first = parameters_;
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [](const at::Tensor& left, const at::Tensor& right) {
                     return left.nbytes() > right.nbytes();
                   });
  std::vector<size_t> bytes(by_rank_.size(), 0);
  for (const at::Tensor& parameter : largest_first) {
    const auto least =
        static_cast<size_t>(std::min_element(bytes.begin(), bytes.end()) - bytes.begin());
    by_rank_[least].push_back(parameter);
    bytes[least] += parameter.nbytes();
  }
}

// Collective. The rank of a parameter follows from the sizes of all parameters. If ranks had
// different parameters, they would overwrite each other's values.
void Ownership::require_same_shapes() {
  std::string own;
  for (const at::Tensor& parameter : parameters_)
    own += fmt::format("{} [{}]\n", c10::toString(parameter.scalar_type()),
                       fmt::join(parameter.sizes(), ", "));
  const std::vector<std::string> all = group_->all_gather_bytes(own);
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw ConfigError(
          fmt::format(
              "ZeroOptimizer needs the same parameters in the same order on all ranks: those of "
              "rank {} have other types or shapes than those of rank 0",
              rank),
          {.hint = "make the same module on all ranks; parts that FullyShardedDataParallel made go "
                   "to an optimizer itself"});
}

bool Ownership::is_own(const at::Tensor& parameter) const {
  const std::vector<at::Tensor>& own = by_rank_[static_cast<size_t>(group_->rank())];
  return std::any_of(own.begin(), own.end(),
                     [&](const at::Tensor& each) { return each.is_same(parameter); });
}

void Ownership::spread() {
  for (size_t rank = 0; rank < by_rank_.size(); ++rank) {
    broadcast_coalesced(ranks_of(*group_), by_rank_[rank], static_cast<int>(rank));
    if (static_cast<int>(rank) == group_->rank()) continue;
    for (const at::Tensor& parameter : by_rank_[rank])
      parameter.unsafeGetTensorImpl()->bump_version();  // as the optimizer's step does
  }
}

void Ownership::zero_grad(bool set_to_none) {
  for (at::Tensor& parameter : parameters_) {
    if (set_to_none)
      parameter.mutable_grad() = at::Tensor();
    else if (parameter.grad().defined())
      parameter.mutable_grad().zero_();
  }
}

std::vector<torch::optim::OptimizerParamGroup> Ownership::own_part(
    const std::vector<torch::optim::OptimizerParamGroup>& groups) const {
  std::vector<torch::optim::OptimizerParamGroup> own = groups;
  for (torch::optim::OptimizerParamGroup& group : own)
    std::erase_if(group.params(), [&](const at::Tensor& parameter) { return !is_own(parameter); });
  return own;
}

}  // namespace convoy::detail
