// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/logs/log_options.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::launch {
namespace {

// Returns which streams of `rank` are selected: "out", "err", "both" or "none".
std::string selected(const StreamSelection& selection, int rank) {
  const bool output = selection.contains(rank, Stream::Output);
  const bool errors = selection.contains(rank, Stream::Errors);
  return output && errors ? "both" : output ? "out" : errors ? "err" : "none";
}

TEST(StreamSelection, TakesTorchrunsValues) {
  const char* const names[] = {"none", "out", "err", "both"};
  for (int value = 0; value < 4; ++value) {
    const auto selection = StreamSelection::parse(std::to_string(value), "--tee");
    EXPECT_EQ(selected(selection, 0), names[value]);
    EXPECT_EQ(selected(selection, 299), names[value]);
    EXPECT_EQ(selection.empty(), value == 0);
  }
  const auto selection = StreamSelection::parse("0:3,1:0,2:1,12:2", "--tee");
  EXPECT_EQ(selected(selection, 0), "both");
  EXPECT_EQ(selected(selection, 1), "none");
  EXPECT_EQ(selected(selection, 2), "out");
  EXPECT_EQ(selected(selection, 3), "none");
  EXPECT_EQ(selected(selection, 12), "err");  // torchrun accepts only ranks of one digit
  EXPECT_TRUE(StreamSelection::parse("0:0,7:0", "--tee").empty());
  EXPECT_TRUE(StreamSelection().empty());
}

TEST(StreamSelection, RefusesOtherTextAndNamesTheFlag) {
  for (const char* const text : {"", "4", "-1", "x", "33", "0:4", "0:", ":1", "0:1,", ",0:1",
                                 "0:1,2", "0:1:2", "-1:1", "0;1", "99999999999:1", "0:1 2"}) {
    try {
      StreamSelection::parse(text, "--redirects");
      ADD_FAILURE() << text;
    } catch (const ConfigError& error) {
      EXPECT_NE(error.sentence().find("--redirects"), std::string::npos) << error.sentence();
    }
  }
}

TEST(LocalRanksFilter, IsAListOfNumbers) {
  EXPECT_EQ(parse_local_ranks_filter("0,1, 12"), (std::vector<int>{0, 1, 12}));
  EXPECT_TRUE(parse_local_ranks_filter("").empty());
  for (const char* const text : {"a", "0,", ",", "-1", "0-3", "1.5"})
    EXPECT_THROW(parse_local_ranks_filter(text), ConfigError) << text;
}

TEST(LineFilters, TwoCommasAreOne) {
  const auto parse = [](const char* text) {
    return parse_line_filters(text, "--duplicate-stdout-filters");
  };
  EXPECT_EQ(parse("apple,orange"), (std::vector<std::string>{"apple", "orange"}));
  EXPECT_EQ(parse("a,,b,c"), (std::vector<std::string>{"a,b", "c"}));
  EXPECT_EQ(parse("a,,,b"), (std::vector<std::string>{"a,", "b"}));
  EXPECT_EQ(parse(",,"), (std::vector<std::string>{","}));
  EXPECT_TRUE(parse("").empty());
  for (const char* const text : {",", "a,", ",a"}) EXPECT_THROW(parse(text), ConfigError) << text;
}

}  // namespace
}  // namespace convoy::launch
