// SPDX-License-Identifier: Apache-2.0
//
// The units of a sharded module, for passes of its wrapper. Any other use of a unit is refused.
#pragma once

#include <cstddef>

#include "convoy/library/internal/module_tree.h"
#include "convoy/model/nn/unit.h"
#include "convoy/train/parallel/sharded/sharded_units.h"

namespace convoy::detail {

class PassUnits : public nn::Residency {
 public:
  // Both arguments must outlive this object. `tree` has all units; the first unit is in use as long
  // as the wrapper's forward() runs.
  PassUnits(parallel::ShardedUnits& units, const ModuleTree& tree) : units_(units), tree_(tree) {}

  bool is_collective() const override { return units_.is_collective(); }
  // Throws ConfigError when no forward(), no backward pass and no hold is active.
  void acquire(size_t unit) override;
  void release(size_t unit) override;

  // A hold keeps all units whole from the next end_pass() on: while a body runs, or until the end
  // of the backward pass that follows a pass with create_graph.
  void hold_for_body(bool holds) { for_body_ = holds; }
  void hold_for_backward(bool holds) { for_backward_ = holds; }
  // Ends a pass. Collective if a hold is active, because it gathers the present values of all
  // units.
  void end_pass();
  // The parameters that are in no unit stay gathered until the next end_pass().
  void keep_rest();

 private:
  parallel::ShardedUnits& units_;
  const ModuleTree& tree_;
  bool in_forward_ = false;
  bool for_body_ = false;
  bool for_backward_ = false;
  bool all_whole_ = false;
};

}  // namespace convoy::detail
