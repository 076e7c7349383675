// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/results/verify_rows.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "convoy/core/base/error.h"

namespace convoy::process {
namespace {

using nlohmann::ordered_json;

class VerifyRows : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "verify-rows-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  VerifyCounts verify(const std::filesystem::path& path, const VerifyFields& fields = {},
                      data::BadRows policy = data::BadRows::Error) {
    rows_.clear();
    return verify_rows(path, fields, policy,
                       [this](const ordered_json& row) { rows_.push_back(row); });
  }

  std::filesystem::path folder_;
  std::vector<ordered_json> rows_;
};

TEST_F(VerifyRows, AddsAVerdictToEachRowInOrder) {
  const VerifyCounts counts = verify(file("rows.jsonl",
                                          R"({"id":1,"gold":"1/2","prediction":"so \\boxed{0.5}"}
{"id":2,"gold":"2+3=5\n#### 5","prediction":"The answer is 6."}
{"id":3,"gold":null,"prediction":"7"}
{"id":4,"gold":7,"prediction":7.0}
)"));
  ASSERT_EQ(rows_.size(), 4u);
  EXPECT_EQ(counts.rows, 4);
  EXPECT_EQ(counts.yes, 2);
  EXPECT_EQ(counts.no, 1);
  EXPECT_EQ(counts.unknown, 1);
  EXPECT_EQ(rows_[0].dump(),
            R"({"id":1,"gold":"1/2","prediction":"so \\boxed{0.5}","verdict":"yes",)"
            R"("gold_answer":"1/2","prediction_answer":"0.5"})");
  EXPECT_EQ(rows_[1]["verdict"], "no");
  EXPECT_EQ(rows_[2]["verdict"], "unknown");
  EXPECT_EQ(rows_[3]["verdict"], "yes");
}

TEST_F(VerifyRows, ReadsAnyOfSeveralReferencesAndOtherFormats) {
  verify(file("rows.json", R"([{"gold":["4","1/2"],"prediction":"0.5"}])"));
  EXPECT_EQ(rows_.at(0)["verdict"], "yes");
  EXPECT_EQ(rows_.at(0)["gold_answer"], ordered_json::array({"4", "1/2"}));
  verify(file("rows.csv", "answer,said\n12,\"The answer is 12.\"\n13,12\n"),
         {.gold = "answer", .prediction = "said"});
  EXPECT_EQ(rows_.at(0)["verdict"], "yes");
  EXPECT_EQ(rows_.at(1)["verdict"], "no");
}

TEST_F(VerifyRows, NamesTheFieldThatIsMissing) {
  const std::filesystem::path path = file("rows.jsonl", "{\"golds\":\"1\",\"prediction\":\"1\"}\n");
  try {
    verify(path);
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().line, 1);
    EXPECT_EQ(error.location().key, "gold");
    EXPECT_NE(error.sentence().find("golds"), std::string::npos);
  }
}

TEST_F(VerifyRows, BadRowsAreLeftOutWhereThatIsAsked) {
  const std::filesystem::path path =
      file("rows.jsonl",
           "{\"gold\":\"1\",\"prediction\":\"1\"}\n{\"gold\":\n{\"gold\":{},\"prediction\":"
           "\"1\"}\n{\"gold\":\"2\",\"prediction\":\"3\"}\n");
  EXPECT_THROW(verify(path), DataError);
  const VerifyCounts counts = verify(path, {}, data::BadRows::Skip);
  EXPECT_EQ(counts.rows, 2);
  EXPECT_EQ(counts.bad_rows.count(), 2);
}

}  // namespace
}  // namespace convoy::process
