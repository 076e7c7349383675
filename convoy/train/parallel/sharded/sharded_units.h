// SPDX-License-Identifier: Apache-2.0
//
// The values of a sharded model: each rank keeps one piece of every unit, and a unit is whole only
// while it is used (ZeRO-3, arXiv 1910.02054; FSDP, arXiv 2304.11277). The next units are gathered
// while this one computes. Driven by the thread that runs the model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "convoy/model/nn/unit.h"
#include "convoy/train/comm/exchange.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/parallel/sharded/flat_parameters.h"
#include "convoy/train/parallel/sharded/gather_order.h"

namespace convoy::parallel {

// The parameters of one unit that have one type and are all trained or all frozen.
struct FlatUnit {
  size_t unit = 0;
  FlatParameters parameters;
  // This rank's piece of the values. With ShardedUnitsConfig::on_host a piece of values that travel
  // lies in the host's memory.
  at::Tensor own = {};
  // true: the values have memory only while the unit is used; false: they are always whole
  bool travels = false;
};

struct ShardedUnitsConfig {
  bool values_travel = false;   // some units' values travel, so a pass is collective
  bool keeps_gathered = false;  // a unit stays whole until the end of the pass
  // This rank's pieces of values that travel lie in the host's memory. A piece is copied to the
  // device before it is gathered.
  bool on_host = false;
  size_t prefetch = 0;  // units that are gathered while one computes; 0: one on CPUs, else two
  // Before a gathered unit is used, the ranks compare which unit they gathered. When the units
  // differ, this is called with the units of all ranks, and throws. Null: no comparison, for models
  // whose passes are the same on every rank.
  std::function<void(const std::vector<int64_t>& units)> when_units_differ = nullptr;
};

class ShardedUnits : public nn::Residency {
 public:
  ShardedUnits(comm::Group& group, const ShardedUnitsConfig& config)
      : group_(group), config_(config), prefetch_(config.prefetch) {}
  ~ShardedUnits() override;  // awaits gathers of units that nothing has used
  ShardedUnits(const ShardedUnits&) = delete;
  ShardedUnits& operator=(const ShardedUnits&) = delete;

  // Takes over `parameters` of a unit, if there are any. Parameters of one type travel when
  // `may_travel` is true and they have at least `smallest_elements` elements. `values`: as for
  // FlatParameters. Returns the flat units of the parameters, one for each type.
  std::vector<std::shared_ptr<FlatUnit>> add(size_t unit,
                                             const std::vector<nn::NamedTensor>& parameters,
                                             bool may_travel, int64_t smallest_elements,
                                             const nn::DeferredValues* values = nullptr);
  void set_linears(size_t unit, std::vector<nn::Linear*> linears);

  bool is_collective() const override { return config_.values_travel; }
  void acquire(size_t unit) override;
  void release(size_t unit) override;
  // Call it when the pass is over: ends all uses of units.
  void end_pass();

  // Starts to gather the changed pieces of a flat unit that stays whole. The next use of its unit
  // waits for them.
  void start_update(FlatUnit& flat);
  void finish_gathers();  // for all units

 private:
  struct State {
    std::vector<std::shared_ptr<FlatUnit>> travelling;
    std::vector<std::shared_ptr<FlatUnit>> staying;
    std::vector<nn::Linear*> linears;
    std::vector<std::unique_ptr<comm::Work>> gathers;  // running gathers
    std::vector<at::Tensor> sent;                      // pieces of these gathers, on the device
    bool whole = false;                                // the unit is whole, or being gathered
    bool shown = false;  // the parameters that stay in memory are shown
    int uses = 0;
  };
  State& state(size_t unit);
  void start_gather(size_t unit);
  void compare(size_t unit);
  void settle_comparisons();
  void finish_gathers(State& state);
  void drop(State& state);
  void show(State& state, bool shown);

  comm::Group& group_;
  const ShardedUnitsConfig config_;
  size_t prefetch_;
  std::vector<State> states_;  // by unit
  GatherOrder order_;
  std::vector<comm::Exchange<int64_t>> comparisons_;  // running comparisons, by gather
};

}  // namespace convoy::parallel
