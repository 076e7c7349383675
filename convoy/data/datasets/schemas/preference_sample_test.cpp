// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/preference_sample.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/data/datasets/encoding/encode_file.h"
#include "convoy/data/datasets/encoding/split_builder.h"
#include "convoy/data/datasets/files_test.h"
#include "convoy/data/datasets/schemas/sample_reader.h"
#include "files/source_folder.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

const SchemaConfig kPairs{.task = "dpo"};

ConvertedRow pair_row(std::string_view text) {
  return convert_to_learn({Json::parse(text), "rows.jsonl", 7, 6}, kPairs);
}

std::string pair_error(std::string_view text, const SchemaConfig& config = kPairs) {
  try {
    convert_to_learn({Json::parse(text), "rows.jsonl", 7, 6}, config);
  } catch (const DataError& error) {
    return error.what() + std::string(" | ") + error.location().hint;
  }
  return "no error";
}

TEST(PreferenceSample, TextsWithAPromptOfTheirOwnAndWithOneInBoth) {
  const Sample own = pair_row(R"({"prompt":"Sum: ","chosen":"3","rejected":"4"})").sample;
  EXPECT_TRUE(own.is_pair);
  EXPECT_EQ(own.prompt + "|" + own.completion + "|" + own.rejected, "Sum: |3|4");
  const Sample common = pair_row(R"({"chosen":"Sum: it is 3","rejected":"Sum: it was 4"})").sample;
  EXPECT_EQ(common.prompt + "|" + common.completion + "|" + common.rejected,
            "Sum: it|"
            " is 3| was 4");
}

TEST(PreferenceSample, ACommonPromptEndsAtACharacterAndBeforeABlank) {
  EXPECT_EQ(common_prompt("a b c", "a b d"), 3U);
  EXPECT_EQ(common_prompt("ab", "abc"), 2U);
  EXPECT_EQ(common_prompt("xy", "ab"), 0U);
  EXPECT_EQ(common_prompt("ä", "ö"), 0U) << "both begin with the byte C3";
  EXPECT_EQ(common_prompt("1 ä", "1 ö"), 1U);
}

TEST(PreferenceSample, ConversationsInEveryForm) {
  const Sample own = pair_row(R"({"prompt":[{"role":"user","content":"u"}],)"
                              R"("chosen":[{"role":"assistant","content":"a"}],)"
                              R"("rejected":[{"role":"assistant","content":"b"}]})")
                         .sample;
  const Sample common = pair_row(R"({"chosen":[{"role":"user","content":"u"},)"
                                 R"({"role":"assistant","content":"a"}],)"
                                 R"("rejected":[{"role":"user","content":"u"},)"
                                 R"({"role":"assistant","content":"b"}]})")
                            .sample;
  const ConvertedRow feedback =
      pair_row(R"({"prompt":"u","prompt_id":"x","messages":[{"role":"user","content":"u"},)"
               R"({"role":"assistant","content":"a"}],"chosen":[{"role":"user","content":"u"},)"
               R"({"role":"assistant","content":"a"}],"rejected":[{"role":"user","content":"u"},)"
               R"({"role":"assistant","content":"b"}],"score_chosen":8.5,"score_rejected":5.0})");
  const Sample factory = pair_row(R"({"conversations":[{"from":"human","value":"u"}],)"
                                  R"("chosen":{"from":"gpt","value":"a"},)"
                                  R"("rejected":{"from":"gpt","value":"b"}})")
                             .sample;
  for (const Sample& sample : {own, common, feedback.sample, factory}) {
    EXPECT_EQ(sample.kind, Sample::Kind::ChatPromptCompletion);
    EXPECT_EQ(sample.messages.dump(), R"([{"role":"user","content":"u"}])");
    EXPECT_EQ(sample.completion_messages.dump(), R"([{"role":"assistant","content":"a"}])");
    EXPECT_EQ(sample.rejected_messages.dump(), R"([{"role":"assistant","content":"b"}])");
  }
  EXPECT_TRUE(feedback.unread.empty()) << "figures of sides are known";
}

TEST(PreferenceSample, FiguresOfASideAreKnownAndTextsAreNot) {
  const ConvertedRow row =
      pair_row(R"({"prompt":"p","chosen":"a","rejected":"b","problem_id":7,"chosen-rating":4.5,)"
               R"("rejected-rating":null,"chosen_model":"m","rejected-model":"n",)"
               R"("length_chosen":12,"rejected_reason":"rude","source":"s"})");
  EXPECT_EQ(row.unread, (std::vector<std::string>{"rejected_reason", "source"}));
}

TEST(PreferenceSample, WhatIsNoPreferenceIsRefused) {
  EXPECT_NE(pair_error(R"({"prompt":"p","completion":"c"})")
                .find("a row of task dpo, orpo has `chosen` and `rejected`"),
            std::string::npos);
  EXPECT_NE(pair_error(R"({"prompt":"p","chosen":"a","rejected":"a"})").find("are equal"),
            std::string::npos);
  EXPECT_NE(pair_error(R"({"chosen":"x","rejected":"y"})").find("no common prompt"),
            std::string::npos);
  EXPECT_NE(pair_error(R"({"prompt":"","chosen":"a","rejected":"b"})").find("`prompt` is empty"),
            std::string::npos);
  for (const std::string name : {"input", "user", "conversation"}) {
    const std::string row =
        fmt::format(R"({{"{}":"4 + 4?","chosen":"The sum is 8","rejected":"The sum is 9"}})", name);
    EXPECT_NE(pair_error(row).find(fmt::format("rename `{}` to `prompt`", name)), std::string::npos)
        << pair_error(row);
  }
  EXPECT_EQ(pair_error(R"({"input":"4?","chosen":"4? It is 4","rejected":"4? It is 5"})"),
            "no error")
      << "both sides begin with the column";
  EXPECT_NE(pair_error(R"({"prompt":"p","chosen":"a","rejected":[]})").find("two texts, or"),
            std::string::npos);
  EXPECT_NE(pair_error(R"({"prompt":"p","chosen":[{"role":"assistant","content":"a"}],)"
                       R"("rejected":[{"role":"assistant","content":"b"}]})")
                .find("the prompt is a text"),
            std::string::npos)
      << "not that a prompt is missing";
  EXPECT_NE(pair_error(R"({"chosen":[{"role":"user","content":"u"},)"
                       R"({"role":"assistant","content":"a"}],)"
                       R"("rejected":[{"role":"user","content":"v"},)"
                       R"({"role":"assistant","content":"b"}]})")
                .find("begin with different turns"),
            std::string::npos);
  // In a task that does not learn from pairs, the error names the tasks that do.
  EXPECT_NE(pair_error(R"({"prompt":"p","chosen":"a","rejected":"b"})", {}).find("dpo, orpo"),
            std::string::npos);
}

TEST(PreferenceSample, AnEmptyTurnOfTheUserIsRefused) {
  const std::string sides = R"("chosen":[{"role":"assistant","content":"a"}],)"
                            R"("rejected":[{"role":"assistant","content":"b"}]})";
  for (const char* const content : {R"("")", R"(" \n")", R"([{"type":"text","text":""}])"})
    EXPECT_EQ(pair_error(fmt::format(R"({{"prompt":[{{"role":"system","content":"s"}},)"
                                     R"({{"role":"user","content":{}}}],{})",
                                     content, sides)),
              "row 7: turn 2 of the prompt, the user's, is empty, so the answer belongs to no "
              "question | write the question, or leave the row out");
  EXPECT_NE(pair_error(R"({"question":"","chosen":"a","rejected":"b"})").find("is empty"),
            std::string::npos);
}

TEST(PreferenceSample, TheCommandThatReadsPreferencesIsNamed) {
  EXPECT_NE(
      pair_error(R"({"prompt":"p","chosen":"a","rejected":"b"})", {}).find("--schema preference"),
      std::string::npos);
}

TEST(PreferenceSample, ASideThatIsNoTextIsSaidWithWhatItIs) {
  EXPECT_EQ(pair_error(R"({"prompt":"p","chosen":5.5,"rejected":"b"})"),
            "row 7: wanted a text or a list of messages under `chosen`, found the number 5.5 | "
            "write it in quotes, as the model is to read it: \"5.5\"");
  EXPECT_NE(pair_error(R"({"prompt":"p","chosen":"a","rejected":true})")
                .find("under `rejected`, found the boolean true"),
            std::string::npos);
  EXPECT_NE(pair_error(R"({"prompt":2.5,"chosen":"a","rejected":"b"})")
                .find("under `prompt`, found the number 2.5"),
            std::string::npos);
  EXPECT_EQ(pair_row(R"({"prompt":"p","chosen":5,"rejected":6})").sample.rejected, "6");
}

TEST(PreferenceSample, AShareGptSideIsNamedAsItIs) {
  const std::string error = pair_error(
      R"({"prompt":[{"role":"user","content":"u"}],"chosen":[{"from":"gpt","value":"a"}],)"
      R"("rejected":[{"from":"robot","value":"b"}]})");
  EXPECT_NE(error.find("unknown speaker `robot` at rejected[0]"), std::string::npos) << error;
}

TEST(PreferenceSample, ColumnsOfOtherProgramsAreNamedWithOurs) {
  const std::vector<std::pair<std::string, std::string>> known = {
      {"chosen_response", "rejected_response"},
      {"response_chosen", "response_rejected"},
      {"preferred", "dispreferred"},
      {"preferred_output", "non_preferred_output"},
      {"accepted", "rejected_answer"},
      {"positive", "negative"},
      {"better_response", "worse_response"},
      {"winner", "loser"},
      {"chosenText", "rejectedText"},
      {"y_w", "y_l"},
      {"response_j", "response_k"}};
  const SchemaConfig forced{.schema = "preference"};
  const SchemaConfig judged{.task = "kto"};
  for (const auto& [better, worse] : known) {
    const std::string row = fmt::format(R"({{"prompt":"p","{}":"b","{}":"a"}})", worse, better);
    const std::string hint =
        fmt::format("rename `{}` to `chosen` and `{}` to `rejected`", better, worse);
    for (const SchemaConfig& config : {kPairs, forced, judged, SchemaConfig()})
      EXPECT_NE(pair_error(row, config).find(hint), std::string::npos) << pair_error(row, config);
  }
  EXPECT_NE(pair_error(R"({"prompt":"p","chosen":"a","rejected_response":"b"})")
                .find("| rename `rejected_response` to `rejected`"),
            std::string::npos);
  for (const auto& [one, other] :
       std::vector<std::pair<std::string, std::string>>{{"response_a", "response_b"},
                                                        {"answer1", "answer2"},
                                                        {"completion_0", "completion_1"}}) {
    const std::string error =
        pair_error(fmt::format(R"({{"prompt":"p","{}":"a","{}":"b","winner_id":1}})", one, other));
    EXPECT_NE(
        error.find(fmt::format("write the better one of `{}` and `{}` as `chosen`", one, other)),
        std::string::npos)
        << error;
  }
  // The row has OpenAI's format of preferences.
  EXPECT_NE(pair_error(R"({"input":{"messages":[{"role":"user","content":"u"}]},)"
                       R"("preferred_output":[{"role":"assistant","content":"a"}],)"
                       R"("non_preferred_output":[{"role":"assistant","content":"b"}]})")
                .find("write the list `messages` of `input` as the column `prompt`"),
            std::string::npos);
  EXPECT_NE(
      pair_error(R"({"prompt":"p","best_of":"a","output":"b"})").find("a row of task dpo, orpo"),
      std::string::npos)
      << "no side has such a name";
}

// `train` finds the schema of a row by its keys, and `data validate` is given the schema. Both
// report the same error.
TEST(PreferenceSample, AMissingSideIsSaidAlikeByAllReaders) {
  EXPECT_NE(pair_error(R"({"prompt":"p","chosen":"a","rejected":null})")
                .find("wanted `chosen` and `rejected`, found the keys prompt, chosen, rejected "
                      "(null)"),
            std::string::npos);
  for (const char* const row :
       {R"({"prompt":"p","chosen":"a","rejected":null})", R"({"prompt":"p","rejected":"a"})",
        R"({"foo":1})", R"({"prompt":"p","chosen":"a","rejected_response":"b"})"})
    EXPECT_EQ(pair_error(row), pair_error(row, {.schema = "preference"}));
}

// The row has the columns of openbmb/UltraFeedback, a ranked list, but is read as a pair.
TEST(PreferenceSample, ARankedListIsPointedToItsSchema) {
  const std::string row =
      R"({"instruction":"p","completions":[{"response":"a","overall_score":7.5},)"
      R"({"response":"b","overall_score":8.0}]})";
  EXPECT_EQ(pair_error(row, {.schema = "preference"}),
            "row 7: wanted `chosen` and `rejected`, found the keys instruction, completions | "
            "this is a ranked list: --schema ranked (data.schema: ranked) makes pairs of it");
  EXPECT_NE(pair_error(row, {.task = "kto"}).find("a ranked list, from whose pairs the tasks dpo"),
            std::string::npos);
}

RowLosses losses_of(std::string_view text, const SchemaConfig& config) {
  RowLosses losses;
  losses.add(convert_to_learn({Json::parse(text), "rows.jsonl", 7, 6}, config).sample, {});
  return losses;
}

TEST(PreferenceSample, APromptThatBothSidesRepeatIsCounted) {
  RowLosses losses;
  for (const char* const row :
       {R"({"prompt":"2 + 3 = ","chosen":"2 + 3 = 5","rejected":"2 + 3 = 6"})",
        R"({"prompt":"2 + 3 =\n","chosen":" 2 + 3 = 5","rejected":"2 + 3 = 6"})",
        R"({"prompt":"2 + 3 = ","chosen":"2 + 3 = 5","rejected":"6"})",
        R"({"prompt":" ","chosen":" 5","rejected":" 6"})",
        R"({"chosen":"2 + 3 = 5","rejected":"2 + 3 = 6"})"})
    losses.add(losses_of(row, kPairs));
  EXPECT_EQ(losses.pairs_with_prompt.rows, 2);
  const std::vector<std::string> warnings = row_warnings(losses, 64, Truncation::KeepStart);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0],
            "in 2 pairs chosen and rejected both begin with the whole prompt, the first is row 7 "
            "on line 7: the model would learn to repeat it; leave the column `prompt` out, and "
            "what both begin with is the prompt");
  const SchemaConfig judged{.task = "kto"};
  const RowLosses answers =
      losses_of(R"({"prompt":"2 + 3 = ","completion":"2 + 3 = 5","label":true})", judged);
  EXPECT_EQ(answers.answers_with_prompt.rows, 1);
  EXPECT_EQ(
      losses_of(R"({"prompt":"a","chosen":"ab","rejected":"ac"})", judged).pairs_with_prompt.rows,
      1);
  EXPECT_EQ(
      losses_of(R"({"prompt":"2 + 3 = ","completion":"2 + 3 = 5"})", {}).answers_with_prompt.rows,
      0);
}

TEST(PreferenceSample, OnlyTheAssistantAnswersBehindThePrompt) {
  const std::string prompt = R"({"prompt":[{"role":"user","content":"u"}],)";
  const std::string rejected = R"("rejected":[{"role":"assistant","content":"b"}]})";
  const auto chosen = [&](const std::string& turns) {
    return pair_error(prompt + R"("chosen":[)" + turns + "]," + rejected);
  };
  const std::string answer = R"({"role":"assistant","content":"a"})";
  const std::string question = R"({"role":"user","content":"x"})";
  const std::string result = R"({"role":"tool","content":"t"})";
  EXPECT_EQ(chosen(answer), "no error");
  EXPECT_EQ(chosen(answer + "," + result + "," + answer), "no error");
  EXPECT_NE(chosen(question).find("`chosen` has a turn of the user"), std::string::npos);
  EXPECT_NE(chosen(answer + "," + question + "," + answer).find("a turn of the user"),
            std::string::npos);
  EXPECT_NE(chosen(result).find("begin and end with"), std::string::npos);
  EXPECT_NE(pair_error(prompt + R"("chosen":[)" + answer + R"(],"rejected":[)" + question + "]}")
                .find("`rejected` has a turn of the user"),
            std::string::npos);
}

TEST(PreferenceSample, ColumnsThatSaySomethingElseAreNamed) {
  const std::string sides = R"("chosen":[{"role":"user","content":"2+3?"},)"
                            R"({"role":"assistant","content":"5"}],)"
                            R"("rejected":[{"role":"user","content":"2+3?"},)"
                            R"({"role":"assistant","content":"6"}]})";
  EXPECT_TRUE(pair_row(R"({"prompt":"2+3? ",)" + sides).unread.empty());
  EXPECT_EQ(pair_row(R"({"prompt":"totally other",)" + sides).unread,
            std::vector<std::string>{"prompt"});
  EXPECT_EQ(
      pair_row(R"({"prompt":"2+3?","messages":[{"role":"user","content":"no"}],)" + sides).unread,
      std::vector<std::string>{"messages"});
}

TEST(PreferenceSample, AnInstructionIsTheTurnOfTheUser) {
  const ConvertedRow row =
      pair_row(R"({"instruction":"Add.","input":"2 3","system":"Be brief.","chosen":"5",)"
               R"("rejected":"6","history":[["a","b"]]})");
  EXPECT_TRUE(row.unread.empty());
  EXPECT_EQ(row.sample.messages.dump(),
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"a"},)"
            R"({"role":"assistant","content":"b"},{"role":"user","content":"Add.\n2 3"}])");
  EXPECT_EQ(row.sample.completion_messages.dump(), R"([{"role":"assistant","content":"5"}])");
  EXPECT_EQ(row.sample.rejected_messages.dump(), R"([{"role":"assistant","content":"6"}])");
}

TEST(PreferenceSample, AQuestionIsTheTurnOfTheUserToo) {
  for (const std::string key : {"question", "query"}) {
    const ConvertedRow row =
        pair_row(R"({"system":"Be brief.",")" + key +
                 R"(":"2 + 3?","chosen":"The sum is 5","rejected":"The sum is 6"})");
    EXPECT_TRUE(row.unread.empty());
    EXPECT_EQ(row.sample.messages.dump(),
              R"([{"role":"system","content":"Be brief."},{"role":"user","content":"2 + 3?"}])");
    EXPECT_EQ(row.sample.completion_messages[0]["content"], "The sum is 5");
  }
}

// A cell of a CSV file holds turns as JSON text.
TEST(PreferenceSample, JsonTextsOfTurnsAreTurns) {
  const auto text_of = [](const char* role, const char* content) {
    return Json(Json::array({{{"role", role}, {"content", content}}}).dump());
  };
  Json columns = {{"prompt", text_of("user", "u")},
                  {"chosen", text_of("assistant", "a")},
                  {"rejected", text_of("assistant", "b")}};
  const Sample sample = pair_row(columns.dump()).sample;
  EXPECT_EQ(sample.kind, Sample::Kind::ChatPromptCompletion);
  EXPECT_EQ(sample.messages.dump(), R"([{"role":"user","content":"u"}])");
  EXPECT_EQ(sample.rejected_messages.dump(), R"([{"role":"assistant","content":"b"}])");
  columns["rejected"] = "b";
  columns["prompt"] = "u";
  EXPECT_EQ(pair_row(columns.dump()).sample.kind, Sample::Kind::PromptCompletion)
      << "beside a text, a text stays a text";
  const Json answer = {{"prompt", text_of("user", "u")}, {"completion", text_of("assistant", "a")}};
  const auto learnt = [](const Json& value) {
    return convert_to_learn({value, "rows.csv", 7, 6}, {}).sample;
  };
  EXPECT_EQ(learnt(answer).kind, Sample::Kind::ChatPromptCompletion);
  EXPECT_EQ(learnt({{"prompt", "Write turns."}, {"completion", text_of("user", "u")}}).kind,
            Sample::Kind::PromptCompletion);
}

TEST(PreferenceSample, EmptyAnswersAndEqualTokensAreNotLearnt) {
  const fs::path folder = testing::source_folder() / "tests/golden/train/tokenizer";
  const text::Tokenizer tokenizer = text::Tokenizer::load(folder);
  const auto chat_template = text::ChatTemplate::load(folder);
  const SampleEncoder encoder(tokenizer, &*chat_template, Supervision());
  const SampleEncoder strict(tokenizer, &*chat_template, {.empty_answers = EmptyAnswers::Error});
  for (const char* text :
       {R"({"prompt":"a","chosen":"","rejected":"x"})",
        R"({"prompt":"a","chosen":"x","rejected":" "})",
        R"({"prompt":[{"role":"user","content":"u"}],"chosen":[{"role":"assistant","content":""}],)"
        R"("rejected":[{"role":"assistant","content":"x"}]})"}) {
    SCOPED_TRACE(text);
    const Sample sample = pair_row(text).sample;
    const EncodedRow row = encoder.encode(sample);
    EXPECT_TRUE(row.empty_answer);
    EXPECT_EQ(count_supervised(row), 0);
    EXPECT_THROW(strict.encode(sample), DataError);
    RowLosses losses;
    losses.add(sample, row);
    const auto warnings = row_warnings(losses, 8, Truncation::KeepStart);
    ASSERT_FALSE(warnings.empty());
    EXPECT_NE(warnings[0].find("1 pair has an empty chosen or rejected answer"), std::string::npos)
        << warnings[0];
  }
}

// The ids that TRL makes of prompts, chosen and rejected answers are in tests/golden/preferences.
TEST(PreferenceSample, TokensAndMasksEqualTrls) {
  const fs::path golden = testing::source_folder() / "tests/golden/preferences";
  const fs::path folder = testing::source_folder() / "tests/golden/train/tokenizer";
  const text::Tokenizer tokenizer = text::Tokenizer::load(folder);
  const auto chat_template = text::ChatTemplate::load(folder);
  const SampleEncoder encoder(tokenizer, &*chat_template, Supervision());
  const auto wanted = nlohmann::json::parse(read_file(golden / "golden.json"))["tokens"];
  ASSERT_EQ(wanted.size(), 4U);
  for (const auto& [name, rows] : wanted.items()) {
    SampleReader reader(golden / (name + ".jsonl"), kPairs, BadRows::Error);
    for (size_t row = 0; row < rows.size(); ++row) {
      SCOPED_TRACE(fmt::format("{} row {}", name, row));
      const auto sample = reader.next();
      ASSERT_TRUE(sample.has_value());
      const std::vector<EncodedRow> sides = rows_of_pair(encoder.encode(*sample));
      ASSERT_EQ(sides.size(), 2U);
      const auto prompt = rows[row][0].get<std::vector<int32_t>>();
      for (size_t side = 0; side < 2; ++side) {
        std::vector<int32_t> ids = prompt;
        for (const auto& id : rows[row][side + 1]) ids.push_back(id.get<int32_t>());
        EXPECT_EQ(sides[side].ids, ids);
        std::vector<uint8_t> mask(ids.size(), 1);
        std::fill(mask.begin(), mask.begin() + std::ssize(prompt), uint8_t{0});
        EXPECT_EQ(sides[side].supervised, mask);
      }
    }
  }
}

EncodedRow counted_row(int32_t first, size_t tokens, size_t prompt) {
  EncodedRow row;
  for (size_t token = 0; token < tokens; ++token) {
    row.ids.push_back(first + static_cast<int32_t>(token));
    row.supervised.push_back(token >= prompt);
  }
  return row;
}

TEST(PreferenceSample, BothSidesAreCutAndDroppedTogether) {
  EncodedRow row = pair_of_rows(counted_row(0, 6, 2), counted_row(50, 4, 2));
  EXPECT_EQ(longest_tokens(row), 6);
  EXPECT_EQ(fewest_supervised(row), 2);
  EXPECT_TRUE(truncate_row(row, {.max_tokens = 5}));
  EXPECT_EQ(row.ids, (std::vector<int32_t>{0, 1, 2, 3, 4, 50, 51, 52, 53}));
  EXPECT_EQ(row.first_of_pair, 5);
  EXPECT_TRUE(truncate_row(row, {.max_tokens = 2}));
  EXPECT_EQ(fewest_supervised(row), 0);
}

EncodedSplits splits_of(const ScratchFolder& folder, const std::string& rows, const Log& log) {
  settings::DataSettings data;
  data.cache_dir = "none";
  data.train_path = folder.write("cut.jsonl", rows).string();
  data.split = {1.0, 0.0, 0};
  return build_splits({.data = data,
                       .task = "dpo",
                       .max_seq_len = 4,
                       .encode =
                           [](const Sample& sample) {
                             const auto side = [](const std::string& text) {
                               EncodedRow row;
                               row.ids.assign(text.begin(), text.end());
                               row.supervised.assign(text.size(), 1);
                               row.supervised[0] = 0;
                               return row;
                             };
                             return pair_of_rows(side("p" + sample.completion),
                                                 side("p" + sample.rejected));
                           },
                       .policy = [](const Sample&) { return std::string("policy"); },
                       .show = [](const std::vector<int32_t>&) { return std::string(); },
                       .bos_id = std::nullopt,
                       .encoder_hash = "letters",
                       .log = log},
                      Splits::TrainAndVal);
}

TEST(PreferenceSample, PairsThatAreEqualWhenCutAreDroppedAndCounted) {
  const ScratchFolder folder;
  const Log log(LogLevel::Quiet);
  const std::string equal = R"({"prompt":"p","chosen":"abcdX","rejected":"abcdY"})";
  const std::string other = R"({"prompt":"p","chosen":"abcdX","rejected":"bbcdX"})";
  const EncodedSplits splits = splits_of(folder, equal + "\n" + other + "\n", log);
  EXPECT_EQ(splits.train.num_rows(), 2);
  EXPECT_EQ(splits.train.source_index(0), 1);
  EXPECT_EQ(splits.reports[0].rows_unsupervised, 1);
  ASSERT_EQ(splits.reports[0].warnings.size(), 1U);
  EXPECT_NE(splits.reports[0].warnings[0].find("1 pair differs only behind model.max_seq_len 4"),
            std::string::npos)
      << splits.reports[0].warnings[0];
  try {
    splits_of(folder, equal + "\n", log);
    FAIL() << "nothing is left";
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().hint.find("supervise"), std::string::npos) << error.location().hint;
    EXPECT_NE(error.location().hint.find("both sides"), std::string::npos);
  }
}

TEST(PreferenceSample, SplitsHoldBothRowsOfAPairOneBehindTheOther) {
  const ScratchFolder folder;
  settings::DataSettings data;
  data.cache_dir = (folder.path() / "cache").string();
  data.train_path = folder
                        .write("pairs.jsonl",
                               "{\"prompt\":\"p\",\"chosen\":\"abc\",\"rejected\":\"d\"}\n"
                               "{\"prompt\":\"q\",\"chosen\":\"e\",\"rejected\":\"fghijk\"}\n")
                        .string();
  data.split = {1.0, 0.0, 0};
  const Log log(LogLevel::Quiet);
  for (const bool cached : {false, true}) {
    const EncodedSplits splits =
        build_splits({.data = data,
                      .task = "dpo",
                      .max_seq_len = 4,
                      .encode =
                          [](const Sample& sample) {
                            return pair_of_rows(counted_row(0, 1 + sample.completion.size(), 1),
                                                counted_row(50, 1 + sample.rejected.size(), 1));
                          },
                      .policy = [](const Sample&) { return std::string("policy"); },
                      .show = [](const std::vector<int32_t>&) { return std::string(); },
                      .bos_id = std::nullopt,
                      .encoder_hash = "pairs",
                      .log = log},
                     Splits::TrainAndVal);
    ASSERT_EQ(splits.train.num_rows(), 4);
    const std::vector<int64_t> lengths = {
        splits.train.length_tokens(0), splits.train.length_tokens(1), splits.train.length_tokens(2),
        splits.train.length_tokens(3)};
    EXPECT_EQ(lengths, (std::vector<int64_t>{4, 2, 2, 4}));
    EXPECT_EQ(splits.train.source_index(2), 1);
    EXPECT_EQ(splits.train.source_index(3), 1);
    EXPECT_EQ(splits.reports[0].rows_read, 2);
    EXPECT_EQ(splits.reports[0].rows_truncated, 1);
    EXPECT_EQ(splits.reports[0].rows_split, 0);
    EXPECT_EQ(splits.reports[0].from_cache, cached);
    EXPECT_EQ(splits.reports[0].schema, "preference");
  }
}

}  // namespace
}  // namespace convoy::data
