// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/unpaired_sample.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/data/datasets/encoding/encode_splits.h"
#include "convoy/data/datasets/files_test.h"
#include "convoy/data/datasets/schemas/sample_reader.h"
#include "files/source_folder.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

const SchemaConfig kKto{.task = "kto"};

ConvertedRow judged_row(std::string_view text) {
  return convert_to_learn({Json::parse(text), "rows.jsonl", 7, 6}, kKto);
}

std::string judged_error(std::string_view text) {
  try {
    judged_row(text);
  } catch (const DataError& error) {
    return fmt::format("{}:{}: {} | {}", error.location().file, error.location().line, error.what(),
                       error.location().hint);
  }
  return "no error";
}

TEST(UnpairedSample, ALabelIsReadInEverySpelling) {
  for (const char* const good : {"true", "1", "1.0", "\"true\"", "\"True\"", "\"1\""})
    EXPECT_TRUE(judged_row(fmt::format(R"({{"prompt":"p","completion":"c","label":{}}})", good))
                    .sample.is_desirable)
        << good;
  for (const char* const bad : {"false", "0", "\"FALSE\"", "\"0\""}) {
    const ConvertedRow row =
        judged_row(fmt::format(R"({{"prompt":"p","completion":"c","kto_tag":{}}})", bad));
    EXPECT_FALSE(row.sample.is_desirable) << bad;
    EXPECT_TRUE(row.sample.is_judged);
    EXPECT_TRUE(row.unread.empty());
    EXPECT_EQ(row.schema, Schema::UnpairedPreference);
  }
  for (const char* const other : {"2", "-1", "0.5", "\"good\"", "\"\"", "[true]"}) {
    const std::string error =
        judged_error(fmt::format(R"({{"prompt":"p","completion":"c","label":{}}})", other));
    EXPECT_NE(error.find("rows.jsonl:7: "), std::string::npos) << error;
    EXPECT_NE(error.find("wanted true or false"), std::string::npos) << error;
  }
  EXPECT_NE(judged_error(R"({"prompt":"p","completion":"c"})").find("`label` (true or false)"),
            std::string::npos);
}

TEST(UnpairedSample, ColumnsThatContradictEachOtherAreRefused) {
  const auto both = [](const char* label, const char* tag) {
    return judged_error(
        fmt::format(R"({{"prompt":"p","completion":"c","label":{},"kto_tag":{}}})", label, tag));
  };
  EXPECT_EQ(both("true", "false"),
            "rows.jsonl:7: row 7: `label` and `kto_tag` contradict each other | keep the one that "
            "is right");
  EXPECT_NE(both("0", "\"true\"").find("contradict each other"), std::string::npos);
  EXPECT_EQ(both("true", "1"), "no error");
  EXPECT_EQ(both("null", "false"), "no error");
  EXPECT_NE(both("true", "\"good\"").find("`kto_tag` is \"good\", wanted true or false"),
            std::string::npos);
  EXPECT_TRUE(
      judged_row(R"({"prompt":"p","completion":"c","label":true,"kto_tag":true})").unread.empty());
}

TEST(UnpairedSample, AnEmptyQuestionIsRefused) {
  EXPECT_EQ(judged_error(R"({"prompt":"","completion":"c","label":true})"),
            "rows.jsonl:7: row 7: the prompt is empty, so the first token of the answer would not "
            "be judged | write the question, or leave the row out");
  for (const char* const row : {R"({"label":true,"prompt":[{"role":"user","content":" "}],)"
                                R"("completion":[{"role":"assistant","content":"a"}]})",
                                R"({"label":true,"messages":[{"role":"user","content":""},)"
                                R"({"role":"assistant","content":"a"}]})",
                                R"({"label":true,"question":"","answer":"a"})"})
    EXPECT_NE(judged_error(row).find("turn 1 of the prompt, the user's, is empty"),
              std::string::npos)
        << judged_error(row);
}

// `train` recognises rows by their keys, `data validate` is told their schema.
TEST(UnpairedSample, AMissingLabelIsSaidAlikeByAllReaders) {
  const SchemaConfig forced{.schema = "unpaired_preference"};
  const auto error_of = [](const std::string& text, const SchemaConfig& config) {
    try {
      convert_to_learn({Json::parse(text), "rows.jsonl", 7, 6}, config);
    } catch (const DataError& error) {
      return error.sentence();
    }
    return std::string("no error");
  };
  EXPECT_EQ(error_of(R"({"prompt":"p","completion":"c","label":null})", forced),
            "rows.jsonl:7: row 7: an answer without `label`, found the keys prompt, completion, "
            "label (null) (add a column `label` (true or false): true for a good answer)");
  EXPECT_NE(error_of(R"({"prompt":"p","completion":"c","is_good":true})", forced)
                .find("(rename `is_good` to `label` (true or false)"),
            std::string::npos);
  for (const char* const row :
       {R"({"prompt":"p","completion":"c"})", R"({"prompt":"p","completion":"c","label":null})",
        R"({"prompt":"p","completion":"c","is_good":true})",
        R"({"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"}]})",
        R"({"foo":1})", R"({"prompt":"p","chosen_response":"a","rejected_response":"b"})",
        R"({"prompt":"p","responses":["a","b"],"scores":[1,2]})"}) {
    EXPECT_NE(error_of(row, kKto), "no error");
    EXPECT_EQ(error_of(row, kKto), error_of(row, forced));
  }
  EXPECT_NE(judged_error(R"({"prompt":"p","completion":5.5,"label":true})")
                .find("under `completion`, found the number 5.5"),
            std::string::npos);
}

TEST(UnpairedSample, AConversationEndsWithTheAnswer) {
  const Sample whole = judged_row(R"({"label":true,"messages":[{"role":"user","content":"u"},)"
                                  R"({"role":"assistant","content":"a"},)"
                                  R"({"role":"user","content":"v"},)"
                                  R"({"role":"assistant","content":"b"}]})")
                           .sample;
  EXPECT_EQ(whole.kind, Sample::Kind::ChatPromptCompletion);
  EXPECT_EQ(whole.messages.size(), 3U);
  EXPECT_EQ(whole.completion_messages[0]["content"], "b");
  const Sample own = judged_row(R"({"label":false,"prompt":[{"role":"user","content":"u"}],)"
                                R"("completion":[{"role":"assistant","content":"a"}]})")
                         .sample;
  EXPECT_EQ(own.messages.size(), 1U);
  EXPECT_FALSE(own.is_desirable);
  EXPECT_NE(judged_error(R"({"label":true,"messages":[{"role":"user","content":"u"}]})")
                .find("begin and end with a turn of the assistant"),
            std::string::npos);
  EXPECT_NE(judged_error(R"({"label":true,"conversations":[{"from":"human","value":"u"}]})")
                .find("`conversations` has to begin and end with a turn of the assistant"),
            std::string::npos);
  EXPECT_NE(judged_error(R"({"label":true,"text":"t"})").find("a text has no prompt"),
            std::string::npos);
  EXPECT_NE(judged_error(R"({"label":true,"prompt":[{"role":"user","content":"u"}],)"
                         R"("completion":"c"})")
                .find("| write both in one form"),
            std::string::npos);
}

TEST(UnpairedSample, OtherTasksStillRefuseABadAnswer) {
  EXPECT_THROW(convert_to_learn({Json::parse(R"({"prompt":"p","completion":"c","label":false})"),
                                 "rows.jsonl", 7, 6},
                                {}),
               DataError);
}

EncodedSplits kto_splits(const std::string& path, const Log& log) {
  const fs::path folder = testing::source_folder() / "tests/golden/train/tokenizer";
  const text::Tokenizer tokenizer = text::Tokenizer::load(folder);
  const auto chat_template = text::ChatTemplate::load(folder, "");
  settings::DataSettings data;
  data.cache_dir = "none";
  data.train_path = path;
  data.split = {1.0, 0.0, 0};
  return encode_splits({.data = data,
                        .task = "kto",
                        .max_seq_len = 256,
                        .tokenizer = tokenizer,
                        .chat_template = &*chat_template,
                        .log = log},
                       Splits::TrainAndVal);
}

// tests/golden/preferences holds the ids and labels that TRL makes of rows, and of pairs in TRL's
// order.
TEST(UnpairedSample, TokensMasksAndLabelsEqualTrls) {
  const fs::path golden = testing::source_folder() / "tests/golden/preferences";
  const auto wanted = nlohmann::json::parse(read_file(golden / "unpaired.json"))["tokens"];
  ASSERT_EQ(wanted.size(), 3U);
  const Log log(LogLevel::Quiet);
  for (const auto& [name, rows] : wanted.items()) {
    const EncodedSplits splits = kto_splits((golden / (name + ".jsonl")).string(), log);
    ASSERT_EQ(splits.train.num_rows(), std::ssize(rows)) << name;
    EXPECT_EQ(splits.reports[0].pairs, name == "explicit" ? 24 : 0);
    for (int64_t row = 0; row < splits.train.num_rows(); ++row) {
      SCOPED_TRACE(fmt::format("{} row {}", name, row));
      const auto& of_trl = rows[static_cast<size_t>(row)];
      auto ids = of_trl[0].get<std::vector<int32_t>>();
      const auto prompt = std::ssize(ids);
      for (const auto& id : of_trl[1]) ids.push_back(id.get<int32_t>());
      const auto found = splits.train.ids(row);
      EXPECT_EQ(std::vector<int32_t>(found.begin(), found.end()), ids);
      EXPECT_EQ(splits.train.supervised_tokens(row), std::ssize(ids) - prompt);
      EXPECT_EQ(splits.train.is_desirable(row), of_trl[2].get<bool>());
    }
  }
}

TEST(UnpairedSample, RowsOfOneLabelAreRefused) {
  const ScratchFolder folder;
  const Log log(LogLevel::Quiet);
  for (const bool good : {true, false}) {
    const fs::path file =
        folder.write("rows.jsonl",
                     fmt::format("{{\"prompt\":\"p\",\"completion\":\"c\",\"label\":{}}}\n", good));
    try {
      kto_splits(file.string(), log);
      FAIL() << "one label";
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(good ? "are good answers" : "are bad answers"),
                std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace convoy::data
