// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "convoy/core/base/error.h"
#include "convoy/core/settings/strategies.h"
#include "convoy/machine/device/dtype.h"
#include "convoy/train/parallel/ddp/ddp.h"
#include "convoy/train/parallel/replicate/replicate.h"
#include "convoy/train/parallel/sharded/sharded.h"
#include "convoy/train/parallel/strategy.h"

namespace convoy::parallel {

void Strategy::prepare_deferred(std::vector<nn::Unit> /*units*/,
                                const nn::DeferredValues& /*values*/) {
  CONVOY_INVARIANT(false, "this strategy needs the model's values in memory");
}

std::vector<at::Tensor> gradients_of(const std::vector<ParameterShard>& shards) {
  std::vector<at::Tensor> gradients;
  for (const ParameterShard& shard : shards) gradients.push_back(shard.gradient);
  return gradients;
}

namespace {

using settings::StrategyFacts;
using settings::StrategyKind;

struct StrategyInputs {
  const StrategyFacts& facts;
  const settings::ParallelSettings& settings;
  comm::Group& group;
  int ranks_of_node;
};

std::unique_ptr<Strategy> make_replicate(const StrategyInputs& inputs) {
  return std::make_unique<Replicate>(inputs.group);
}

// Gradients add up in fp32, so they need no other type to be sent in fp32.
std::optional<at::ScalarType> wire_of(const settings::ParallelSettings& settings) {
  if (settings.gradient_dtype == "fp32") return std::nullopt;
  return device::parse_dtype(settings.gradient_dtype);
}

std::unique_ptr<Strategy> make_ddp(const StrategyInputs& inputs) {
  return std::make_unique<Ddp>(inputs.group, inputs.settings.bucket_mb << 20,
                               wire_of(inputs.settings));
}

Offload offload_of(const std::string& name) {
  return name == "optimizer"    ? Offload::Optimizer
         : name == "parameters" ? Offload::Parameters
                                : Offload::None;
}

std::unique_ptr<Strategy> make_sharded(const StrategyInputs& inputs) {
  const settings::ParallelSettings& settings = inputs.settings;
  return std::make_unique<Sharded>(
      inputs.group,
      ShardedConfig{.level = inputs.facts.cuts_values      ? ShardLevel::Parameters
                             : inputs.facts.cuts_gradients ? ShardLevel::Gradients
                                                           : ShardLevel::Optimizer,
                    .smallest_elements = settings.keep_whole_below,
                    .reshard_after_forward = settings.reshard_after_forward,
                    .prefetch = static_cast<size_t>(settings.prefetch_blocks),
                    .wire = wire_of(settings),
                    .offload = offload_of(settings.offload),
                    .ranks_that_share = settings.shard_over == "node" ? inputs.ranks_of_node : 0});
}

// The one registry of strategies: how each row of settings::kStrategies is made.
struct StrategyMaker {
  StrategyKind kind;
  std::unique_ptr<Strategy> (*make)(const StrategyInputs& inputs);
};
constexpr std::array kMakers = {
    StrategyMaker{StrategyKind::None, make_replicate},
    // Ranks are threads: train/parallel/dp/replica_threads.h.
    StrategyMaker{StrategyKind::Dp, make_ddp},
    StrategyMaker{StrategyKind::Ddp, make_ddp},
    StrategyMaker{StrategyKind::Zero1, make_sharded},
    StrategyMaker{StrategyKind::Zero2, make_sharded},
    StrategyMaker{StrategyKind::Zero3, make_sharded},
};
static_assert(kMakers.size() == settings::kStrategies.size(), "each strategy has one maker");

}  // namespace

bool shards_values(const settings::ParallelSettings& settings) {
  return settings.strategy != "auto" && settings::strategy_named(settings.strategy).cuts_values;
}

std::unique_ptr<Strategy> make_strategy(const settings::ParallelSettings& settings,
                                        comm::Group& group, int ranks_of_node) {
  const StrategyFacts& facts = settings::strategy_for(settings.strategy, group.size());
  settings::check_parallel(facts, settings);
  const auto maker = std::find_if(kMakers.begin(), kMakers.end(),
                                  [&](const StrategyMaker& one) { return one.kind == facts.kind; });
  CONVOY_INVARIANT(maker != kMakers.end(), "no maker for the strategy {}", facts.name);
  return maker->make({facts, settings, group, ranks_of_node});
}

}  // namespace convoy::parallel
