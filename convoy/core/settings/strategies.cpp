// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/strategies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::settings {
namespace {

template <class Fits>
std::vector<std::string> words_of_strategies(Fits fits) {
  std::vector<std::string> words = {"auto"};
  std::vector<std::string> other_names;
  for (const StrategyFacts& strategy : kStrategies) {
    if (!fits(strategy)) continue;
    words.emplace_back(strategy.name);
    if (!strategy.other_name.empty()) other_names.emplace_back(strategy.other_name);
  }
  words.insert(words.end(), other_names.begin(), other_names.end());
  return words;
}

template <class Fits>
std::string names_of_strategies(Fits fits) {
  std::vector<std::string_view> names;
  for (const StrategyFacts& strategy : kStrategies)
    if (fits(strategy)) names.push_back(strategy.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Throws ConfigError when a setting is given (`asked`) that `strategy` does not have. `fits`: tells
// whether a strategy has the setting.
template <class Fits>
void refuse_unless(const StrategyFacts& strategy, bool asked, const char* key, Fits fits) {
  if (!asked || fits(strategy)) return;
  throw ConfigError(fmt::format("parallel.{} is for {}, and the strategy is {}", key,
                                names_of_strategies(fits), strategy.name),
                    {.key = std::string("parallel.") + key,
                     .hint = "leave it out, or choose another parallel.strategy"});
}

}  // namespace

void check_parallel(const StrategyFacts& strategy, const ParallelSettings& settings) {
  const auto cuts_states = [](const StrategyFacts& one) { return one.cuts_states; };
  const auto cuts_values = [](const StrategyFacts& one) { return one.cuts_values; };
  const auto is_dp = [](const StrategyFacts& one) { return one.kind == StrategyKind::Dp; };
  refuse_unless(strategy, settings.offload != "none", "offload", cuts_states);
  refuse_unless(strategy, settings.shard_over != "all", "shard_over", cuts_states);
  refuse_unless(strategy, settings.prefetch_blocks != 0, "prefetch_blocks", cuts_values);
  refuse_unless(strategy, !settings.reshard_after_forward, "reshard_after_forward", cuts_values);
  refuse_unless(strategy, settings.replicas > 0, "replicas", is_dp);
}

const StrategyFacts& strategy_named(std::string_view name) {
  const auto found =
      std::find_if(kStrategies.begin(), kStrategies.end(), [&](const StrategyFacts& strategy) {
        return name == strategy.name || (!name.empty() && name == strategy.other_name);
      });
  if (found != kStrategies.end()) return *found;
  const std::vector<std::string> words = strategy_words();
  throw ConfigError(
      fmt::format("parallel.strategy must be one of {}, found `{}`{}", fmt::join(words, ", "), name,
                  did_you_mean(name, words)),
      {.key = "parallel.strategy", .hint = "--strategy auto chooses one for this machine"});
}

const StrategyFacts& strategy_for(std::string_view word, int64_t ranks) {
  return strategy_named(word != "auto" ? word : ranks > 1 ? "ddp" : "none");
}

std::vector<StrategyFacts> strategies_of_processes() {
  std::vector<StrategyFacts> strategies;
  std::copy_if(kStrategies.begin(), kStrategies.end(), std::back_inserter(strategies),
               [](const StrategyFacts& strategy) { return strategy.spans_processes; });
  return strategies;
}

std::vector<std::string> strategy_words() {
  return words_of_strategies([](const StrategyFacts&) { return true; });
}

std::vector<std::string> rank_strategy_words() {
  return words_of_strategies(
      [](const StrategyFacts& strategy) { return strategy.kind != StrategyKind::Dp; });
}

std::string strategy_help() {
  std::vector<std::string_view> tried;
  for (const StrategyFacts& strategy : kStrategies)
    if (strategy.spans_processes) tried.push_back(strategy.name);
  std::string help = fmt::format("auto = the first of {} that fits", fmt::join(tried, ", "));
  for (const StrategyFacts& strategy : kStrategies) {
    help += fmt::format("; {}", strategy.name);
    if (!strategy.other_name.empty()) help += fmt::format(" ({})", strategy.other_name);
    help += fmt::format(": {}", strategy.summary);
  }
  return help;
}

}  // namespace convoy::settings
