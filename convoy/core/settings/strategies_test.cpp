// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/strategies.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/core/config/field_list.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::settings {
namespace {

std::vector<std::string> choices_of(const config::Section& section, std::string_view name) {
  for (const config::Field& field : section.fields)
    if (field.name == name) return field.choices;
  ADD_FAILURE() << "there is no field " << name;
  return {};
}

TEST(Strategies, FlagsAndKeysTakeTheirChoicesFromTheTable) {
  ParallelSettings keys;
  BenchTrainFlags flags;
  const std::vector<std::string> of_keys = choices_of(config::list_fields(keys), "strategy");
  const std::vector<std::string> of_flags = choices_of(config::list_fields(flags), "strategy");
  EXPECT_EQ(of_keys, (std::vector<std::string>{"auto", "none", "dp", "ddp", "zero1", "zero2",
                                               "zero3", "fsdp"}));
  EXPECT_EQ(of_flags,
            (std::vector<std::string>{"auto", "none", "ddp", "zero1", "zero2", "zero3", "fsdp"}));
  const std::string help = strategy_help();
  for (const std::string& word : of_keys)
    EXPECT_NE(help.find(word), std::string::npos) << word << " is missing in: " << help;
}

TEST(Strategies, ARowIsFoundByEitherName) {
  EXPECT_EQ(strategy_named("fsdp").kind, StrategyKind::Zero3);
  EXPECT_EQ(strategy_named("zero1").kind, StrategyKind::Zero1);
  EXPECT_EQ(strategy_for("auto", 1).kind, StrategyKind::None);
  EXPECT_EQ(strategy_for("auto", 2).kind, StrategyKind::Ddp);
  EXPECT_EQ(strategy_for("dp", 2).kind, StrategyKind::Dp);
}

TEST(Strategies, AnotherWordIsRefusedWithAllNames) {
  for (const char* word : {"zero4", "", "auto"}) {
    try {
      strategy_named(word);
      ADD_FAILURE() << word << " names no strategy";
    } catch (const ConfigError& error) {
      const std::string text = error.what();
      for (const StrategyFacts& strategy : kStrategies)
        EXPECT_NE(text.find(strategy.name), std::string::npos) << text;
    }
  }
}

// Each strategy holds less than the one before it, so the last one holds least.
TEST(Strategies, AutoTriesThoseThatCutMoreLater) {
  int before = -1;
  for (const StrategyFacts& strategy : strategies_of_processes()) {
    const int cuts = strategy.cuts_states + strategy.cuts_gradients + strategy.cuts_values;
    EXPECT_GT(cuts, before) << strategy.name;
    before = cuts;
  }
}

}  // namespace
}  // namespace convoy::settings
