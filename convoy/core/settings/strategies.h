// SPDX-License-Identifier: Apache-2.0
//
// The strategies: how ranks share the work and the state of a training. Parser, help and error
// texts read this table, and the memory formulas use its columns (sizing::StateSharing).
// train/parallel/registry.cpp makes the strategies. Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::settings {

enum class StrategyKind { None, Dp, Ddp, Zero1, Zero2, Zero3 };

// Each rank holds a shard of every kind of state that the strategy cuts, and all other state in
// full.
struct StrategyFacts {
  StrategyKind kind;
  std::string_view name;
  std::string_view summary;
  std::string_view other_name = {};  // a second accepted name
  bool spans_processes = false;      // ranks are processes; `auto` tries it
  bool cuts_states = false;          // each rank holds a piece of the optimizer states
  bool cuts_gradients = false;       // gradients are cut after every micro-batch
  bool cuts_values = false;          // each rank holds a piece of the parameters
};

// For strategies that span processes, `auto` takes the first that fits: each later strategy holds
// less per rank and sends more.
inline constexpr std::array<StrategyFacts, 6> kStrategies = {{
    {.kind = StrategyKind::None, .name = "none", .summary = "one rank"},
    {.kind = StrategyKind::Dp, .name = "dp", .summary = "replicas in threads of one process"},
    {.kind = StrategyKind::Ddp,
     .name = "ddp",
     .summary = "every rank holds all",
     .spans_processes = true},
    {.kind = StrategyKind::Zero1,
     .name = "zero1",
     .summary = "ranks share optimizer states",
     .spans_processes = true,
     .cuts_states = true},
    {.kind = StrategyKind::Zero2,
     .name = "zero2",
     .summary = "and gradients",
     .spans_processes = true,
     .cuts_states = true,
     .cuts_gradients = true},
    {.kind = StrategyKind::Zero3,
     .name = "zero3",
     .summary = "and parameters",
     .other_name = "fsdp",
     .spans_processes = true,
     .cuts_states = true,
     .cuts_gradients = true,
     .cuts_values = true},
}};

// Looks up either name. Throws ConfigError with all names for any other word.
const StrategyFacts& strategy_named(std::string_view name);
// The same, but also takes "auto": ddp for more than one rank, else none.
const StrategyFacts& strategy_for(std::string_view word, int64_t ranks);

struct ParallelSettings;
// Throws ConfigError for a setting that belongs to other strategies.
void check_parallel(const StrategyFacts& strategy, const ParallelSettings& settings);

// The strategies that `auto` tries, in that order.
std::vector<StrategyFacts> strategies_of_processes();

// The accepted values of parallel.strategy: auto, every name, every other name.
std::vector<std::string> strategy_words();
// The same for programs whose ranks are always processes.
std::vector<std::string> rank_strategy_words();
// The meaning of each word, one line each.
std::string strategy_help();

}  // namespace convoy::settings
