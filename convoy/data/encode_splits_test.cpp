// SPDX-License-Identifier: Apache-2.0
//
// The whole way, with the example model's tokenizer and template.
#include "convoy/data/encode_splits.h"

#include <gtest/gtest.h>

#include "convoy/base/error.h"
#include "convoy/data/test_files.h"

namespace convoy::data {
namespace {

struct Example {
  ScratchFolder folder;
  std::filesystem::path root = golden_data().parent_path().parent_path().parent_path() / "examples";
  text::Tokenizer tokenizer = text::Tokenizer::load(root / "tally-3m");
  std::optional<text::ChatTemplate> chat_template = text::ChatTemplate::load(root / "tally-3m");
  settings::DataSettings data;
  Log log{LogLevel::Quiet};

  Example() {
    data.cache_dir = folder.path().string();
    data.train_path = (root / "sums" / "train.jsonl").string();
    data.test_path = (root / "sums" / "test.jsonl").string();
  }
  EncodedSplits encode(int64_t max_seq_len) {
    return encode_splits({.data = data,
                          .task = "sft",
                          .max_seq_len = max_seq_len,
                          .seed = 1,
                          .tokenizer = tokenizer,
                          .chat_template = chat_template ? &*chat_template : nullptr,
                          .log = log},
                         Splits::All);
  }
  std::string supervised_text(const TokenDataset& dataset, int64_t row) const {
    std::vector<int32_t> ids;
    for (size_t token = 0; token < dataset.ids(row).size(); ++token)
      if (dataset.supervised(row)[token]) ids.push_back(dataset.ids(row)[token]);
    return tokenizer.decode(ids, false);
  }
};

TEST(EncodeSplits, ChatRowsOfTheExampleSuperviseTheAnswerAndItsEnd) {
  Example example;
  const EncodedSplits splits = example.encode(512);
  EXPECT_EQ(splits.train.num_rows(), 1000);
  EXPECT_EQ(splits.test.num_rows(), 500);
  ASSERT_EQ(splits.reports.size(), 2u);
  EXPECT_EQ(splits.reports[0].schema, "loose");
  EXPECT_EQ(splits.reports[0].rows_truncated, 0);
  EXPECT_FALSE(splits.policy.empty());
  const std::string answer =
      "Tia has 3*9=<<3*9=27>>27 balloons.\nTogether they have 9+27=<<9+27=36>>36 balloons.\n#### "
      "36";
  const std::string supervised = example.supervised_text(splits.train, 0);
  EXPECT_NE(supervised.find(answer), std::string::npos) << supervised;
  EXPECT_EQ(supervised.find("Hana has 9 balloons"), std::string::npos) << supervised;
  EXPECT_GT(supervised.size(), answer.size()) << "the end of the turn is learnt too";
  EXPECT_EQ(example.encode(512).train.content_hash(), splits.train.content_hash());
  EXPECT_TRUE(example.encode(512).reports[1].from_cache);
}

TEST(EncodeSplits, ARunThatCutsAwayEveryAnswerIsRefused) {
  Example example;
  try {
    example.encode(8);
    FAIL() << "wanted an error";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("of 1000 rows, 1000 have no supervised token"),
              std::string::npos)
        << error.what();
    EXPECT_EQ(error.place().line, 1);
  }
}

TEST(EncodeSplits, ChatRowsWithoutATemplateAreRefused) {
  Example example;
  example.chat_template.reset();
  EXPECT_THROW(example.encode(512), DataError);
}

}  // namespace
}  // namespace convoy::data
