// SPDX-License-Identifier: Apache-2.0
//
// The state of an optimizer on this rank.
#pragma once

#include <torch/optim/optimizer.h>

#include "convoy/library/detail/sharing.h"
#include "convoy/library/zero.h"

namespace convoy::detail {

struct HeldState {
  torch::optim::Optimizer& optimizer;
  bool on_every_rank;  // true: equal on all ranks; false: for this rank's parameters only
};

template <class Optimizer>
HeldState held_state(ZeroOptimizer<Optimizer>& optimizer, const Sharing&) {
  return {optimizer.own(), false};
}
inline HeldState held_state(torch::optim::Optimizer& optimizer, const Sharing& sharing) {
  return {optimizer, sharing.replicated()};
}

}  // namespace convoy::detail
