// SPDX-License-Identifier: Apache-2.0
//
// Encodes whole splits with the example model's tokenizer and template.
#include "convoy/data/datasets/encoding/encode_splits.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/files_test.h"

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

TEST(EncodeSplits, TheTimeThatATemplateWritesIsPartOfTheCachesKey) {
  constexpr int64_t kDay = 86'400;
  Example example;
  example.data.train_path = example.folder.write(
      "chat.jsonl",
      R"({"messages":[{"role":"user","content":"1?"},{"role":"assistant","content":"1"}]})");
  example.data.test_path.clear();
  example.data.split = {1, 0, 0};
  example.chat_template = text::ChatTemplate::load(
      example.root / "tally-3m",
      example.folder.write(
          "dated.jinja",
          "{{ strftime_now('%d %b %Y') }}\n{% for m in messages %}<|im_start|>{{ m.role }}\n"
          "{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}"
          "<|im_start|>assistant\n{% endif %}"));
  text::TemplateClock& clock = example.chat_template->clock();
  clock.stop_at(100 * kDay + kDay / 2);
  const EncodedSplits first = example.encode(512);
  EXPECT_NE(first.policy.find("strftime_now(\"%d %b %Y\") is 11 Apr 1970"), std::string::npos)
      << first.policy;
  clock.stop_at(100 * kDay + kDay / 2 + 60);
  EXPECT_TRUE(example.encode(512).reports[0].from_cache) << "the date is the same";
  clock.stop_at(101 * kDay + kDay / 2);
  const EncodedSplits next = example.encode(512);
  EXPECT_FALSE(next.reports[0].from_cache);
  EXPECT_NE(next.train.content_hash(), first.train.content_hash());
}

TEST(EncodeSplits, ARunThatCutsAwayEveryAnswerIsRefused) {
  Example example;
  try {
    example.encode(8);
    FAIL() << "wanted an error";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("of 1000 rows, 1000 have no token to learn"),
              std::string::npos)
        << error.what();
    EXPECT_EQ(error.location().line, 1);
  }
}

TEST(EncodeSplits, WhatTheTemplateLeavesOutIsAWarningOfTheFile) {
  Example example;
  const std::string good =
      R"({"messages": [{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "2"}]})"
      "\n";
  const std::string tools =
      R"({"tools": [{"type": "function"}], "messages": [{"role": "user", "content": "1+1"}, )"
      R"({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "add"}}]}]})"
      "\n";
  example.data.train_path = example.folder.write("tools.jsonl", good + tools + tools).string();
  example.data.test_path = example.data.train_path;
  example.data.template_kwargs.json = R"({"enable_thinkng": false})";
  const EncodedSplits splits = example.encode(512);
  EXPECT_EQ(splits.train.num_rows(), 1);
  const std::string warnings = fmt::format("{}", fmt::join(splits.reports[0].warnings, "\n"));
  for (const char* wanted :
       {"the chat template does not write the `tools` of 2 rows, the first is row 2 on line 2",
        "does not write the `tool_calls` of 2 rows, the first is row 2 on line 2: the model does "
        "not see them",
        "the chat template has no variable `enable_thinkng` (in 3 rows), which has no effect",
        "2 rows have an empty answer, the first is row 2 on line 2"})
    EXPECT_NE(warnings.find(wanted), std::string::npos) << warnings;
  example.data.empty_answers = "learn";
  EXPECT_EQ(example.encode(512).train.num_rows(), 3);
}

TEST(EncodeSplits, AnswersWithoutAnEndAreAWarningOfTheFile) {
  Example example;
  example.data.train_path =
      example.folder
          .write("rows.jsonl", R"({"messages": [{"role": "user", "content": "1+1"}, )"
                               R"({"role": "assistant", "content": "2"}]})"
                               "\n")
          .string();
  example.data.test_path = example.data.train_path;
  example.chat_template = text::ChatTemplate::load(
      example.root / "tally-3m",
      example.folder.write("t.jinja",
                           "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
                           "{% if add_generation_prompt %}<assistant>{% endif %}"));
  const std::string warnings =
      fmt::format("{}", fmt::join(example.encode(512).reports[0].warnings, "\n"));
  EXPECT_NE(warnings.find("the chat template ends no turn with a token of its own: in 1 row the "
                          "last learnt token is text (`2`)"),
            std::string::npos)
      << warnings;
}

TEST(EncodeSplits, WeightsOfTurnsAreKeptInTheCacheAndReported) {
  Example example;
  const auto row_with = [](const char* first, const char* second) {
    return fmt::format(
        R"({{"messages": [{{"role": "user", "content": "1+1"}}, )"
        R"({{"role": "assistant", "content": "3"{}}}, {{"role": "user", "content": "Sure?"}}, )"
        R"({{"role": "assistant", "content": "2"{}}}]}})"
        "\n",
        first, second);
  };
  example.data.train_path =
      example.folder
          .write("weights.jsonl", row_with("", "") + row_with(R"(, "weight": 0)", "") +
                                      row_with(R"(, "weight": 0.25)", R"(, "mask": 1)") +
                                      row_with(R"(, "train": false)", R"(, "masked": true)"))
          .string();
  example.data.test_path = example.data.train_path;
  for (const bool from_cache : {false, true}) {
    const EncodedSplits splits = example.encode(512);
    EXPECT_EQ(splits.reports[0].from_cache, from_cache);
    ASSERT_EQ(splits.train.num_rows(), 3);
    EXPECT_EQ(example.supervised_text(splits.train, 0), "3<|im_end|>2<|im_end|>");
    EXPECT_EQ(example.supervised_text(splits.train, 1), "2<|im_end|>");
    EXPECT_EQ(example.supervised_text(splits.train, 2), "3<|im_end|>2<|im_end|>");
    EXPECT_EQ(splits.train.loss_weight(0), 4);
    EXPECT_EQ(splits.train.loss_weight(1), 2);
    EXPECT_EQ(splits.train.loss_weight(2), 2.5);
    EXPECT_EQ(splits.reports[0].rows_own_weights, 3);
    EXPECT_EQ(splits.reports[0].rows_unsupervised, 1);
    EXPECT_EQ(splits.reports[0].weighted_tokens, 2);
    const std::string warnings = fmt::format("{}", fmt::join(splits.reports[0].warnings, "\n"));
    EXPECT_NE(warnings.find("1 row has turns with `mask`, the first is row 3 on line 3"),
              std::string::npos)
        << warnings;
    EXPECT_NE(report_line(splits.reports[0]).find("3 rows with weights of turns"),
              std::string::npos);
  }
}

TEST(EncodeSplits, AFileOfEmptyCompletionsIsRefused) {
  Example example;
  std::string rows;
  for (int row = 0; row < 18; ++row) rows += "{\"prompt\": \"1+1\", \"completion\": \"\"}\n";
  example.data.train_path = example.folder.write("empty.jsonl", rows).string();
  example.data.test_path = example.data.train_path;
  try {
    example.encode(512);
    FAIL() << "wanted an error";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("18 rows have an empty answer"), std::string::npos)
        << error.what();
  }
}

TEST(EncodeSplits, PlainTextFilesAreRows) {
  Example example;
  std::filesystem::create_directory(example.folder.path() / "texts");
  example.folder.write("texts/a.txt", "one two\nthree\n\nfour\n");
  example.folder.write("texts/b.txt", "five\r\n");
  example.data.train_path = (example.folder.path() / "texts").string();
  example.data.test_path = example.data.train_path;
  const EncodedSplits documents = example.encode(512);
  ASSERT_EQ(documents.train.num_rows(), 2);
  EXPECT_EQ(
      example.supervised_text(documents.train, 0).find("two\nthree\n\nfour\n") != std::string::npos,
      true);
  example.data.text_rows = "line";
  const EncodedSplits lines = example.encode(512);
  EXPECT_EQ(lines.train.num_rows(), 4);
  EXPECT_FALSE(lines.reports[0].from_cache);
}

TEST(EncodeSplits, ChatRowsWithoutATemplateAreRefused) {
  Example example;
  example.chat_template.reset();
  EXPECT_THROW(example.encode(512), DataError);
}

}  // namespace
}  // namespace convoy::data
