// SPDX-License-Identifier: Apache-2.0
//
// `convoy data SUB`, as a user runs it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "convoy/base/files.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy::apps {
namespace {

class DataCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file_atomic(folder_.path() / "rows.jsonl",
                      R"({"messages": [{"role": "user", "content": "1+1"},)"
                      R"( {"role": "assistant", "content": "2"}]})"
                      "\n"
                      R"({"messages": [{"role": "user", "content": "2+2"},)"
                      R"( {"role": "assistant", "content": "4"}]})"
                      "\n");
  }
  convoy::testing::ScriptEnd data(const std::string& arguments) const {
    return convoy::testing::run_script(
        folder_.path(),
        fmt::format("'{}/convoy' data {}", std::getenv("CONVOY_BIN_DIR"), arguments));
  }

  convoy::testing::TemporaryFolder folder_;
};

TEST_F(DataCommand, ExistingOutputsAreRefusedWithoutForce) {
  for (const std::string command :
       {"convert rows.jsonl a.jsonl --to messages", "system rows.jsonl b.jsonl --prompt Careful.",
        "style rows.jsonl c.jsonl --style Briefly.", "dedup rows.jsonl d.jsonl",
        "split rows.jsonl parts --names a,b --ratios 0.5 0.5",
        "process rows.jsonl --output processed --ratios 0.5 0.5 0",
        "convert rows.jsonl shards.jsonl --shard-rows 1", "stats rows.jsonl --histogram e.svg",
        "validate rows.jsonl --report f.jsonl"}) {
    const auto first = data(command);
    ASSERT_EQ(first.code, 0) << command << first.out;
    const auto again = data(command);
    EXPECT_EQ(again.code, 2) << command << again.out;
    EXPECT_NE(again.out.find("exists already"), std::string::npos) << again.out;
    EXPECT_NE(again.out.find("--force writes over it"), std::string::npos) << again.out;
    EXPECT_EQ(data(command + " --force").code, 0) << command;
  }
}

TEST_F(DataCommand, ColumnsThatAreNotKeptAreNamedOnce) {
  write_file_atomic(folder_.path() / "wide.jsonl",
                    R"({"prompt": "1+1", "completion": "2", "id": 7, "source": "a", "none": null})"
                    "\n"
                    R"({"prompt": "2+2", "completion": "4", "id": 8})"
                    "\n");
  const auto all = data("convert wide.jsonl all.jsonl --to messages");
  ASSERT_EQ(all.code, 0) << all.out;
  EXPECT_NE(all.out.find("2 columns are not kept: `id` (in 2 rows), `source` (in 1 row); --keep "
                         "COLUMN writes one too"),
            std::string::npos)
      << all.out;
  const auto kept = data("convert wide.jsonl kept.jsonl --to messages --keep id --json");
  ASSERT_EQ(kept.code, 0) << kept.out;
  EXPECT_NE(kept.out.find(R"("columns_not_kept":["source"])"), std::string::npos) << kept.out;
  const auto same = data("convert wide.jsonl same.csv");
  ASSERT_EQ(same.code, 0) << same.out;
  EXPECT_EQ(same.out.find("not kept"), std::string::npos) << same.out;
  const auto processed = data("process wide.jsonl --output out --ratios 0.5 0.5 0");
  ASSERT_EQ(processed.code, 0) << processed.out;
  EXPECT_NE(processed.out.find("`source` (in 1 row)"), std::string::npos) << processed.out;
}

TEST_F(DataCommand, NoPartIsWrittenEmpty) {
  const auto shares = data("split rows.jsonl parts --names train,val --ratios 0.9 0.1");
  EXPECT_EQ(shares.code, 2) << shares.out;
  EXPECT_NE(shares.out.find("part `val` would have none of the 2 rows"), std::string::npos)
      << shares.out;
  EXPECT_NE(shares.out.find("--counts"), std::string::npos) << shares.out;
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "parts/train.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "parts/val.jsonl"));
  const auto counts = data("split rows.jsonl parts --names train,val --counts -1 2");
  EXPECT_EQ(counts.code, 2) << counts.out;
  EXPECT_NE(counts.out.find("part `train`"), std::string::npos) << counts.out;
  const auto zero = data("split rows.jsonl parts --ratios 0.5 0.5 0");
  ASSERT_EQ(zero.code, 0) << zero.out;
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "parts/val.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "parts/test.jsonl"));
  const auto processed = data("process rows.jsonl --output processed");
  EXPECT_EQ(processed.code, 2) << processed.out;
  EXPECT_NE(processed.out.find("part `test` would have none"), std::string::npos) << processed.out;
}

}  // namespace
}  // namespace convoy::apps
