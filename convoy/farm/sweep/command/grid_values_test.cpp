// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/grid_values.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/farm/sweep/command/command_grid.h"
#include "convoy/farm/sweep/command/function_sweep.h"

namespace convoy::sweep {
namespace {

using nlohmann::json;

std::string refusal_of(const std::vector<json>& values) {
  try {
    check_grid_values("lr", values);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string refusal_by_command(const std::string& values) {
  CommandFlags flags;
  flags.grid.names = {"lr=" + values};
  try {
    plan_command(flags, {"echo", "{lr}"});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string refusal_by_function(const std::vector<json>& values) {
  FunctionSweep sweep;
  sweep.name = "one";
  sweep.grid["lr"] = values;
  sweep.value = [](const json&, int64_t) { return 0.0; };
  const char* const words[] = {"program"};
  try {
    run_function_sweep(sweep, {}, 1, words);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(GridValues, OneNumberIsOneValueHoweverItIsSpelt) {
  EXPECT_EQ(refusal_of({1, 2, 1.0}), "the grid has a value of `lr` twice, as 1 and as 1.0");
  EXPECT_EQ(refusal_of({1e-3, "0.001"}),
            "the grid has a value of `lr` twice, as 0.001 and as \"0.001\"");
  EXPECT_EQ(refusal_of({"adam", "adam"}),
            "the grid has a value of `lr` twice, as \"adam\" and as \"adam\"");
  EXPECT_EQ(refusal_of({}), "the grid has no value of `lr`");
  EXPECT_EQ(refusal_of({1, 2, "adam", true, json::array({1, 2})}), "");
}

TEST(GridValues, CommasWithinBracketsBracesAndQuotesArePartOfAValue) {
  using Values = std::vector<std::string>;
  EXPECT_EQ(listed_values("[64,64],[128]"), (Values{"[64,64]", "[128]"}));
  EXPECT_EQ(listed_values("0.1, 0.01 ,\t1"), (Values{"0.1", "0.01", "1"}));
  EXPECT_EQ(listed_values(R"({"a": 1, "b": [2, 3]}, {})"),
            (Values{R"({"a": 1, "b": [2, 3]})", "{}"}));
  EXPECT_EQ(listed_values(R"("a, b",'c, "d"',e)"), (Values{R"("a, b")", R"('c, "d"')", "e"}));
  EXPECT_EQ(listed_values(R"(["]", "a\"b,"],(1,2))"), (Values{R"(["]", "a\"b,"])", "(1,2)"}));
  EXPECT_EQ(listed_values("f(x, [1, {2, 3}]),g"), (Values{"f(x, [1, {2, 3}])", "g"}));
  // An apostrophe or an inch sign does not begin a quoted text.
  EXPECT_EQ(listed_values("don't,c\"d"), (Values{"don't", "c\"d"}));
  EXPECT_EQ(listed_values(",--fast"), (Values{"", "--fast"}));
  EXPECT_EQ(listed_values("a b"), (Values{"a b"}));
}

TEST(GridValues, AnEmptyValueStandsFirst) {
  EXPECT_EQ(listed_values(",1"), (std::vector<std::string>{"", "1"}));
  EXPECT_EQ(listed_values(""), (std::vector<std::string>{""}));
  for (const char* const text : {"1,,2", "1,", ",", ",,1", "1, ,2"})
    EXPECT_THROW(listed_values(text), ConfigError) << text;
  EXPECT_NE(refusal_by_command("1,,2").find("a value behind a comma is empty"), std::string::npos)
      << refusal_by_command("1,,2");
}

TEST(GridValues, WhatIsNotClosedIsRefused) {
  for (const char* const text :
       {"[64,64", "64],[128]", "[0,1)", "{\"a\": 1", "\"a,b", "'a", "a,(b", "[\"]", "\"a\\"})
    EXPECT_THROW(listed_values(text), ConfigError) << text;
  EXPECT_NE(refusal_by_command("[64,64").find("--grid lr: `[64,64`: wanted `]`"), std::string::npos)
      << refusal_by_command("[64,64");
}

TEST(GridValues, TextThatIsNoUtf8IsRefusedInWordsToo) {
  EXPECT_NE(refusal_of({"\xff", "\xff"}), "");
}

TEST(GridValues, OfACommandAndOfAFunctionAreRefusedInTheSameWords) {
  const std::string words = "the grid has a value of `lr` twice, as \"1\" and as \"1.0\"";
  EXPECT_EQ(refusal_by_command("1,2,1.0"), words);
  EXPECT_EQ(refusal_by_function({"1", "2", "1.0"}), words);
}

}  // namespace
}  // namespace convoy::sweep
