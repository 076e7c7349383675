// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_rows_source.h"

#include <gtest/gtest.h>

#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::apps {
namespace {

class ProcessRows : public ::testing::Test {
 protected:
  settings::ProcessDataSettings named(const std::string& name, const std::string& text) {
    write_file_atomic(folder_ / name, text);
    settings::ProcessDataSettings data;
    data.dataset = (folder_ / name).string();
    return data;
  }
  static nlohmann::json selection(settings::ProcessDataSettings data, int64_t first,
                                  int64_t count) {
    data.start_from = first;
    data.num_examples = count;
    return selection_of(named_dataset(data), data);
  }

  testing::TemporaryFolder folder_;
};

TEST_F(ProcessRows, ARowThatCanNotBeReadHoldsItsTextAndSaysWhy) {
  const auto data = named("a.jsonl", "{\"problem\": tru}\n{\"problem\": \"p\"}\n\"\xff\"\n");
  const process::RowStream rows = selected_rows(named_dataset(data), data);
  const auto torn = rows();
  ASSERT_TRUE(torn);
  EXPECT_EQ(torn->value, nlohmann::ordered_json({{"unreadable_row", "{\"problem\": tru}"}}));
  EXPECT_NE(torn->unreadable.find("a.jsonl:1: not valid JSON"), std::string::npos)
      << torn->unreadable;
  EXPECT_EQ(rows()->unreadable, "");
  const auto no_text = rows();
  EXPECT_EQ(no_text->value["unreadable_row"], "\"\xef\xbf\xbd\"");
  EXPECT_EQ(no_text->source_index, 2);
  EXPECT_FALSE(rows());
}

TEST_F(ProcessRows, TheSameRowsAreTheSameSelection) {
  const auto data = named("a.jsonl", "{\"a\": 1}\n{\"a\": 2}\n{bad\n");
  const nlohmann::json all = {{"start_from", 0}, {"num_examples", "all"}};
  for (const int64_t count : {int64_t{-1}, int64_t{3}, int64_t{4}, INT64_MAX})
    EXPECT_EQ(selection(data, 0, count), all) << count;
  EXPECT_EQ(selection(data, 0, 2)["num_examples"], 2);
  EXPECT_EQ(selection(data, 1, 2)["num_examples"], "all");
  EXPECT_EQ(selection(data, 1, 1), (nlohmann::json{{"start_from", 1}, {"num_examples", 1}}));
}

}  // namespace
}  // namespace convoy::apps
