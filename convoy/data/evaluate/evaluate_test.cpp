// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/data/evaluate/sample_files.h"
#include "convoy/data/evaluate/text_match.h"

namespace convoy::evaluate {
namespace {

TEST(ExactMatch, TrimsBothSidesOnly) {
  EXPECT_TRUE(exact_match(" 42\n", "42"));
  EXPECT_TRUE(exact_match("\u00a042\u3000", "\u200942"));
  EXPECT_TRUE(exact_match("", " "));
  EXPECT_FALSE(exact_match("", "42"));
  EXPECT_FALSE(exact_match("4 2", "42"));
  EXPECT_FALSE(exact_match("Yes", "yes"));
  EXPECT_FALSE(exact_match("42\u200b", "42")) << "a zero-width space is no white space";
}

TEST(FinalNumber, TakesTheLastAfterTheMarkElseTheLast) {
  EXPECT_EQ(final_number("2 + 3 = 5\n#### 5"), "5");
  EXPECT_EQ(final_number("#### 7 or #### $1,234.50."), "1234.5");
  EXPECT_EQ(final_number("The answer is 12."), "12");
  EXPECT_EQ(final_number("10 then 3,000,000"), "3000000");
  EXPECT_EQ(final_number("1, 2,3"), "3");
  EXPECT_EQ(final_number("#### -007"), "-7");
  EXPECT_EQ(final_number("#### -$5"), "-5");
  EXPECT_EQ(final_number("10-3"), "3");
  EXPECT_EQ(final_number("0.50"), "0.5");
  EXPECT_EQ(final_number("-0.0"), "0");
  EXPECT_EQ(final_number("12 #### none"), std::nullopt);
  EXPECT_EQ(final_number(""), std::nullopt);
}

TEST(NumericMatch, ComparesValuesNotSpelling) {
  EXPECT_TRUE(numeric_match("so it is $1,200.00", "... #### 1200"));
  EXPECT_FALSE(numeric_match("1201", "#### 1200"));
  EXPECT_FALSE(numeric_match("", "#### 1200"));
  EXPECT_FALSE(numeric_match("", "no number"));
}

class SampleFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / fmt::format("convoy-evaluate-{}", ::getpid());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(SampleFiles, RoundTrip) {
  const auto path = folder_ / "samples.jsonl";
  write_samples(path, {{"2+2\n", "é \"4\"", {"4"}}, {"", "", {"", "b"}}, {{}, "", {"a"}}});
  EXPECT_EQ(read_file(path).substr(0, 10), "{\"input\":\"");
  const auto samples = read_samples(path);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0].pred, "é \"4\"");
  EXPECT_EQ(samples[0].input, "2+2\n");
  EXPECT_EQ(samples[0].refs, std::vector<std::string>{"4"});
  EXPECT_EQ(samples[1].refs, (std::vector<std::string>{"", "b"}));
  EXPECT_FALSE(samples[2].input.has_value());
}

TEST_F(SampleFiles, BadRowsNameTheLine) {
  const auto path = folder_ / "samples.jsonl";
  for (const std::string bad :
       {"not json", "[]", R"({"pred":"a"})", R"({"pred":1,"ref":"a"})", R"({"pred":"a","ref":[]})",
        R"({"pred":"a","ref":[1]})", R"({"pred":"a","ref":null})"}) {
    write_file_atomic(path, "{\"pred\":\"a\",\"ref\":\"b\"}\n" + bad + "\n");
    try {
      read_samples(path);
      ADD_FAILURE() << bad;
    } catch (const DataError& error) {
      EXPECT_EQ(error.location().line, 2) << bad;
    }
  }
}

}  // namespace
}  // namespace convoy::evaluate
