// SPDX-License-Identifier: Apache-2.0
//
// An optimizer's state as this rank has it.
#pragma once

#include <torch/optim/optimizer.h>

#include "convoy/library/detail/sharing.h"
#include "convoy/library/zero.h"

namespace convoy::detail {

struct HeldState {
  torch::optim::Optimizer& optimizer;
  bool on_every_rank;  // alike; else it belongs to what this rank holds of the parameters
};

template <class Optimizer>
HeldState held_state(ZeroOptimizer<Optimizer>& optimizer, const Sharing&) {
  return {optimizer.own(), false};
}
inline HeldState held_state(torch::optim::Optimizer& optimizer, const Sharing& sharing) {
  return {optimizer, sharing.replicated()};
}

}  // namespace convoy::detail
