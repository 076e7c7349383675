// SPDX-License-Identifier: Apache-2.0
//
// The units of a sharded module as passes of its wrapper use them; all other uses are refused.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "convoy/library/internal/module_tree.h"
#include "convoy/model/nn/unit.h"
#include "convoy/train/parallel/sharded/sharded_units.h"

namespace convoy::detail {

class PassUnits : public nn::Residency {
 public:
  // Both outlive this. `tree` has all units; the first is in use while the wrapper's forward() is.
  PassUnits(parallel::ShardedUnits& units, const ModuleTree& tree) : units_(units), tree_(tree) {}

  bool is_collective() const override { return units_.is_collective(); }
  // Throws ConfigError outside of forward(), of backward and of a hold.
  void acquire(size_t unit) override;
  void release(size_t unit) override;

  // From the next end_pass() on all units stay whole: while a body runs, and until the backward
  // pass that follows one with create_graph.
  void hold_for_body(bool holds) { for_body_ = holds; }
  void hold_for_backward(bool holds) { for_backward_ = holds; }
  // Collective where there is a hold, which then has the present values.
  void end_pass();
  // Until then the parameters that are in no unit stay.
  void keep_rest();
  // The units that were gathered, or might have been, since the last call, in their order. Ranks
  // must agree on it: a gather pairs with the other ranks' next one, of whatever unit.
  std::vector<size_t> take_gathered() { return std::exchange(gathered_, {}); }

 private:
  void use(size_t unit);

  parallel::ShardedUnits& units_;
  const ModuleTree& tree_;
  std::vector<size_t> gathered_;
  bool in_forward_ = false;
  bool for_body_ = false;
  bool for_backward_ = false;
  bool all_whole_ = false;
};

}  // namespace convoy::detail
