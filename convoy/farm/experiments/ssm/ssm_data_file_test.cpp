// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/ssm_data_file.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::experiments {
namespace {

std::string file_refusal_of(const std::string& text) {
  try {
    read_ssm_data(text, "pairs.json");
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().file, "pairs.json");
    return error.what();
  }
  return "";
}

TEST(SsmDataFile, WhatIsNoJsonIsToldWithItsPosition) {
  EXPECT_EQ(file_refusal_of("[{\"alpha\": NaN, \"w\": [1]}]"),
            "not valid JSON at line 1, column 12: invalid literal; last read: '\"alpha\": N'");
  EXPECT_TRUE(file_refusal_of("[\n  {\"alpha\": 0.5,\n   \"w\": [1, 0,]}\n]")
                  .starts_with("not valid JSON at line 3, column 15: "));
  EXPECT_TRUE(
      file_refusal_of("[{\"alpha\": 0.5, \"w\": [1]}\n").starts_with("not valid JSON at line 2"));
  EXPECT_EQ(file_refusal_of("[{\"alpha\": 0.5,\n \"w\": [1e999]}]"),
            "the number 1e999 is out of range at line 2, column 8");
}

TEST(SsmDataFile, AnotherKindOfJsonIsNamed) {
  const std::string wanted = "wanted a JSON list of pairs of a teacher and its data, found ";
  EXPECT_EQ(file_refusal_of(""), wanted + "an empty file");
  EXPECT_EQ(file_refusal_of(" \n"), wanted + "an empty file");
  EXPECT_EQ(file_refusal_of(R"({"alpha": 0.5, "w": [1]})"), wanted + "one object");
  EXPECT_EQ(file_refusal_of("3"), wanted + "one number");
  EXPECT_EQ(file_refusal_of("null"), wanted + "null");
  EXPECT_EQ(file_refusal_of("[]"), wanted + "an empty one");
}

TEST(SsmDataFile, AnEntryHasOneKindOfSequences) {
  EXPECT_TRUE(file_refusal_of(
                  R"([{"alpha": 0.5, "w": [1]}, {"alpha": 0.5, "w": [1], "w_sequences": [[2]]}])")
                  .starts_with("the entry of seed 1 has both `w` and `w_sequences`"));
  EXPECT_TRUE(file_refusal_of(R"([{"alpha": 0.5}])").starts_with("the entry of seed 0: wanted"));
  const auto entries =
      read_ssm_data(R"([{"alpha": 0.5, "w": [1]}, {"alpha": 1, "w_sequences": [[2], [3]]}])", "f");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].w, (std::vector<std::vector<double>>{{1}}));
  EXPECT_EQ(entries[1].w, (std::vector<std::vector<double>>{{2}, {3}}));
}

}  // namespace
}  // namespace convoy::experiments
