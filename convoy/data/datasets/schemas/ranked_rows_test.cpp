// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/ranked_rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "convoy/data/datasets/files_test.h"
#include "convoy/data/datasets/schemas/sample_reader.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

Row ranked_row(std::string_view text) { return {Json::parse(text), "rows.jsonl", 7, 6}; }

std::string ranked_pairs(std::string_view text, RankedPairs which, RankedCounts* counts = nullptr) {
  RankedCounts own;
  std::string pairs;
  for (const Row& pair : pairs_of_ranked_row(ranked_row(text), which, counts ? *counts : own))
    pairs += fmt::format("{}>{} ", pair.value["chosen"].get<std::string>(),
                         pair.value["rejected"].get<std::string>());
  return pairs;
}

std::string ranked_error(std::string_view text) {
  try {
    RankedCounts counts;
    pairs_of_ranked_row(ranked_row(text), RankedPairs::All, counts);
  } catch (const DataError& error) {
    EXPECT_FALSE(error.location().hint.empty());
    return error.what();
  }
  return "no error";
}

constexpr const char* kFour =
    R"({"prompt":"p","responses":["mid","best","worst","good"],"scores":[2,4,1,"3.5"]})";

TEST(RankedRows, EachWayToPairAnswers) {
  EXPECT_EQ(ranked_pairs(kFour, RankedPairs::BestVsWorst), "best>worst ");
  EXPECT_EQ(ranked_pairs(kFour, RankedPairs::BestVsRest), "best>good best>mid best>worst ");
  EXPECT_EQ(ranked_pairs(kFour, RankedPairs::Adjacent), "best>good good>mid mid>worst ");
  EXPECT_EQ(ranked_pairs(kFour, RankedPairs::All),
            "best>good best>mid best>worst good>mid good>worst mid>worst ");
  for (const auto which :
       {RankedPairs::BestVsWorst, RankedPairs::BestVsRest, RankedPairs::Adjacent, RankedPairs::All})
    EXPECT_EQ(ranked_pairs_named(ranked_pairs_name(which)), which);
}

TEST(RankedRows, EqualRanksAndAnswersMakeNoPairAndAreCounted) {
  RankedCounts counts;
  EXPECT_EQ(ranked_pairs(R"({"prompt":"p","responses":["a","b","c"],"scores":[1,1,0]})",
                         RankedPairs::All, &counts),
            "a>c b>c ");
  EXPECT_EQ(counts.ties, 1);
  EXPECT_EQ(ranked_pairs(R"({"prompt":"p","responses":["a","a"],"scores":[1,0]})",
                         RankedPairs::BestVsWorst, &counts),
            "");
  EXPECT_EQ(ranked_pairs(R"({"prompt":"p","responses":["a","b","c"],"scores":[1,null,0]})",
                         RankedPairs::BestVsWorst, &counts),
            "a>c ");
  EXPECT_EQ(counts.sentence(RankedPairs::All),
            "3 ranked lists make 3 pairs (all); 1 list has no two answers of different rank; "
            "2 pairs of one rank or answer left out; 1 answer without a rank left out");
  EXPECT_EQ(RankedCounts().sentence(RankedPairs::All), "");
}

TEST(RankedRows, RanksAndScoresThatContradictEachOtherAreRefused) {
  EXPECT_EQ(
      ranked_error(R"({"prompt":"p","responses":["a","b"],"ranks":[1,2],"scores":[3,"4"]})"),
      "row 7: `ranks` and `scores` contradict each other: `responses[0]` has the better rank, "
      "`responses[1]` the better score");
  EXPECT_NE(ranked_error(R"({"prompt":"p","answers":[{"text":"a","rank":2,"score":5},)"
                         R"({"text":"b","rank":1,"score":4}]})")
                .find("`rank` and `score` contradict each other"),
            std::string::npos);
  EXPECT_NE(ranked_error(R"({"prompt":"p","answers":[{"text":"a","score":5},)"
                         R"({"text":"b","score":4}],"ranks":[2,1]})")
                .find("`ranks` and `score` contradict each other"),
            std::string::npos);
  // Equal values contradict nothing, nor does an answer without one, nor a score that is a word.
  for (const char* const columns :
       {R"("ranks":[1,2],"scores":[4,4])", R"("ranks":[1,1],"scores":[3,4])",
        R"("ranks":[1,2],"scores":[null,4])", R"("ranks":[1,2],"ratings":["N/A","4"])"})
    EXPECT_EQ(ranked_error(fmt::format(R"({{"prompt":"p","responses":["a","b"],{}}})", columns)),
              "no error")
        << columns;
}

TEST(RankedRows, TheWorstAnswerSaysSomethingElseThanTheBest) {
  for (const char* list : {R"(["a","b","a"])", R"(["a","a","b"])"})
    EXPECT_EQ(ranked_pairs(fmt::format(R"({{"prompt":"p","responses":{},"scores":[3,1,1]}})", list),
                           RankedPairs::BestVsWorst),
              "a>b ");
}

TEST(RankedRows, AFileWithoutAPairIsNotAFileWithoutRows) {
  const ScratchFolder folder;
  SampleReader reader(
      folder.write("rows.jsonl", R"({"prompt":"p","responses":["a","b"],"scores":[1,1]})"),
      {.task = "dpo"}, BadRows::Error);
  EXPECT_FALSE(reader.next());
  try {
    reader.require_samples();
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_NE(error.sentence().find("no pair is left: 1 ranked list makes 0 pairs"),
              std::string::npos)
        << error.sentence();
  }
}

TEST(RankedRows, NaNIsNoScoreAndInfinityIsRefused) {
  Row row = ranked_row(R"({"prompt":"p","responses":["a","b","c"]})");
  row.value["scores"] = {1.0, std::nan(""), 2.0};
  RankedCounts counts;
  const std::vector<Row> pairs = pairs_of_ranked_row(row, RankedPairs::All, counts);
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].value["chosen"], "c");
  EXPECT_EQ(counts.unranked, 1);
  row.value["scores"] = {1.0, HUGE_VAL, 2.0};
  try {
    pairs_of_ranked_row(row, RankedPairs::All, counts);
    FAIL() << "infinity";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("found inf"), std::string::npos) << error.what();
  }
}

TEST(RankedRows, TheFirstAnswerMayHaveNoScore) {
  RankedCounts counts;
  EXPECT_EQ(ranked_pairs(R"({"prompt":"p","completions":[{"response":"a","score":null},)"
                         R"({"response":"b","score":1},{"response":"c","score":2}]})",
                         RankedPairs::All, &counts),
            "c>b ");
  EXPECT_EQ(counts.unranked, 1);
  EXPECT_EQ(ranked_pairs(R"({"prompt":"p","completions":[{"response":"a","score":null},)"
                         R"({"response":"b","score":null}]})",
                         RankedPairs::All, &counts),
            "");
  EXPECT_EQ(counts.unranked, 3);
  EXPECT_NE(ranked_error(R"({"prompt":"p","answers":[{"text":"a","score":1},"b"]})")
                .find("an entry that is none"),
            std::string::npos);
}

// The rows have the columns of UltraFeedback, Nectar and Stack Exchange, lists of messages, and
// tables.
TEST(RankedRows, TheFormsOfKnownDataSets) {
  EXPECT_EQ(
      ranked_pairs(R"({"instruction":"p","completions":[{"response":"a","overall_score":7.5},)"
                   R"({"response":"b","overall_score":8.0}]})",
                   RankedPairs::BestVsWorst),
      "b>a ");
  EXPECT_EQ(ranked_pairs(R"({"prompt":"p","answers":[{"answer":"a","rank":2.0},)"
                         R"({"answer":"b","rank":1.0}]})",
                         RankedPairs::BestVsWorst),
            "b>a ")
      << "rank 1 is the best";
  EXPECT_EQ(ranked_pairs(R"({"prompt":"p","answers":"[\"a\", \"b\"]","rating":"[1, 2]"})",
                         RankedPairs::BestVsWorst),
            "b>a ")
      << "columns of a table";
  EXPECT_EQ(ranked_pairs(R"({"prompt":"p","completions":{"response":["a","b"],"score":[1,2]}})",
                         RankedPairs::BestVsWorst),
            "b>a ")
      << "a struct of lists";
  RankedCounts counts;
  const Json exchange =
      pairs_of_ranked_row(ranked_row(R"({"question":"q","answers":[{"text":"a","pm_score":1},)"
                                     R"({"text":"b","pm_score":3}],"date":"d"})"),
                          RankedPairs::All, counts)
          .at(0)
          .value;
  EXPECT_EQ(exchange.dump(), R"({"question":"q","date":"d","chosen":"b","rejected":"a",)"
                             R"("score_chosen":3.0,"score_rejected":1.0})");
  const Json turns = pairs_of_ranked_row(ranked_row(R"({"prompt":[{"role":"user","content":"q"}],)"
                                                    R"("responses":["a","b"],"ranks":[1,2]})"),
                                         RankedPairs::All, counts)
                         .at(0)
                         .value;
  EXPECT_EQ(turns["chosen"].dump(), R"([{"role":"assistant","content":"a"}])");
  EXPECT_EQ(turns["rank_rejected"], 2);
  const Json messages =
      pairs_of_ranked_row(
          ranked_row(R"({"prompt":"q","responses":[[{"role":"assistant","content":"a"}],)"
                     R"([{"role":"assistant","content":"b"}]],"scores":[0,1]})"),
          RankedPairs::All, counts)
          .at(0)
          .value;
  EXPECT_EQ(messages["prompt"].dump(), R"([{"role":"user","content":"q"}])");
}

// The pairs keep the question's column, so `input` is not joined to the question, as it would be to
// an `instruction`.
TEST(RankedRows, AQuestionStaysTheColumnThatItIs) {
  RankedCounts counts;
  for (const std::string key : {"question", "query"}) {
    const Json texts =
        pairs_of_ranked_row(
            ranked_row("{\"" + key + R"(":"q","input":"i","responses":["a","b"],"scores":[0,1]})"),
            RankedPairs::All, counts)[0]
            .value;
    EXPECT_EQ(texts[key], "q");
    EXPECT_FALSE(texts.contains("instruction"));
    const Sample sample =
        convert_row({texts, "rows.jsonl", 7, 6}, Schema::Preference, {.task = "dpo"}).sample;
    EXPECT_EQ(sample.messages.dump(), R"([{"role":"user","content":"q"}])");
    const Json turns =
        pairs_of_ranked_row(
            ranked_row("{\"" + key + R"(":"q","responses":[[{"role":"assistant","content":"a"}],)" +
                       R"([{"role":"assistant","content":"b"}]],"scores":[0,1]})"),
            RankedPairs::All, counts)[0]
            .value;
    EXPECT_EQ(turns["prompt"].dump(), R"([{"role":"user","content":"q"}])");
    EXPECT_FALSE(turns.contains(key));
  }
}

TEST(RankedRows, APromptOfMessagesIsNotReplacedByAnInstruction) {
  RankedCounts counts;
  const Json pair = pairs_of_ranked_row(
                        ranked_row(R"({"prompt":[{"role":"user","content":"p"}],"instruction":"i",)"
                                   R"("responses":[[{"role":"assistant","content":"a"}],)"
                                   R"([{"role":"assistant","content":"b"}]],"scores":[0,1]})"),
                        RankedPairs::All, counts)[0]
                        .value;
  EXPECT_EQ(pair["prompt"].dump(), R"([{"role":"user","content":"p"}])");
}

TEST(RankedRows, WhatIsNoRankedListIsSaid) {
  EXPECT_FALSE(is_ranked_row(Json::parse(R"({"question":"q","answers":{"text":["a"]}})")));
  EXPECT_FALSE(is_ranked_row(Json::parse(R"({"question":"q","answers":["a"]})")));
  EXPECT_FALSE(is_ranked_row(
      Json::parse(R"({"prompt":"p","chosen":"a","rejected":"b","answers":["a"],"rating":[1]})")));
  EXPECT_NE(ranked_error(R"({"prompt":"p","responses":["a","b"],"scores":[1]})")
                .find("`responses` has 2 entries and `scores` 1"),
            std::string::npos);
  EXPECT_NE(ranked_error(R"({"prompt":"p","responses":["a","b"],"scores":[1,"N/A"]})")
                .find("`scores` should have numbers, found \"N/A\""),
            std::string::npos);
  EXPECT_NE(ranked_error(R"({"prompt":"p"})").find("wanted a list of answers"), std::string::npos);
}

// In training every pair has an index of its own, and the line of its list.
TEST(RankedRows, AFileOfListsIsReadAsPairs) {
  const ScratchFolder folder;
  const auto path = folder.write(
      "rows.jsonl", R"({"prompt":"p","responses":["a","b","c"],"scores":[3,2,1],"id":5})"
                    "\n{torn\n"
                    R"({"prompt":"p","responses":["a","b"],"scores":[1,1]})"
                    "\n"
                    R"({"prompt":"p","responses":["a","b"],"scores":[1]})"
                    "\n"
                    R"({"prompt":"r","responses":["a","b"],"scores":[1,2]})"
                    "\n");
  SampleReader reader(path, {.task = "dpo", .ranked_pairs = RankedPairs::Adjacent}, BadRows::Skip);
  std::string read;
  while (const auto sample = reader.next())
    read += fmt::format("{}:{} {}|{}|{} ", sample->index, sample->line, sample->prompt,
                        sample->completion, sample->rejected);
  EXPECT_EQ(read, "0:1 p|a|b 1:1 p|b|c 4:5 r|b|a ");
  EXPECT_EQ(reader.bad_rows().count(), 2);
  EXPECT_EQ(reader.rows_seen(), 5);
  EXPECT_EQ(reader.ranked_lists(),
            "3 ranked lists make 3 pairs (adjacent); 1 list has no two answers of different rank; "
            "1 pair of one rank or answer left out");
  EXPECT_NE(reader.unread_columns().find("`id` (in 2 rows)"), std::string::npos);
}

TEST(RankedRows, ABadFirstRowDoesNotHideTheLists) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.jsonl", R"({"prompt":"p","responses":["a","b"]})"
                                               "\n" +
                                                   std::string(kFour) + "\n");
  SampleReader reader(path, {.task = "dpo"}, BadRows::Skip);
  EXPECT_EQ(reader.next()->completion, "best");
  EXPECT_FALSE(reader.next().has_value());
  EXPECT_EQ(reader.bad_rows().count(), 1);
}

// An error in an answer names the answer's place in the list, because the file has no sides
// `chosen` and `rejected`.
TEST(RankedRows, ErrorsNameTheListAndNotTheSides) {
  const ScratchFolder folder;
  const auto error_of = [&](const std::string& row) -> std::string {
    SampleReader reader(folder.write("rows.jsonl", row + "\n"), {.task = "dpo"}, BadRows::Error);
    try {
      reader.next();
    } catch (const DataError& error) {
      return error.sentence();
    }
    return "no error";
  };
  const std::string prompt = R"({"prompt":[{"role":"user","content":"u"}],)";
  const std::string good = R"([{"role":"assistant","content":"a"}])";
  const std::vector<std::pair<std::string, std::string>> faults = {
      {R"({"responses":["x","y"],"scores":[1,2]})",
       "responses[1] and responses[0] begin with different texts"},
      {prompt + R"("responses":[)" + good + R"(,[{"content":"b"}]],"scores":[1,2]})",
       "wanted a string `role` at responses[1][0]"},
      {prompt + R"("answers":[{"answer":)" + good +
           R"(,"rank":1},{"answer":[{"role":"user","content":"b"}],"rank":2}]})",
       "`answers[1].answer` has a turn of the user"},
      {prompt + R"("responses":[)" + good + R"(,[]],"scores":[1,2]})",
       "`responses[1]` is an empty list"},
      {R"({"prompt":"p","responses":["a",5.5,"b"],"scores":[1,2,3]})",
       "wanted a text or a list of messages at `responses[1]`, found 5.5"},
      {R"({"prompt":"p","responses":["a",null],"scores":[1,2]})", "`responses[1]`, found null"},
      {R"({"prompt":"p","completions":[{"response":"a","score":1},{"score":2}]})",
       "`completions[1]` has no answer"}};
  for (const auto& [row, wanted] : faults) {
    const std::string error = error_of(row);
    EXPECT_NE(error.find(wanted), std::string::npos) << error;
    EXPECT_EQ(error.find("chosen"), std::string::npos) << error;
    EXPECT_NE(error.find("rows.jsonl:1: "), std::string::npos) << error;
  }
}

TEST(RankedRows, AWholeNumberIsTheTextOfItsDigits) {
  EXPECT_EQ(ranked_pairs(R"({"prompt":"2 + 3 = ","responses":[5,6],"scores":[2,1]})",
                         RankedPairs::BestVsWorst),
            "5>6 ");
}

TEST(RankedRows, OtherFilesAreReadAsTheyAre) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.jsonl", R"({"prompt":"p","chosen":"a","rejected":"b"})"
                                               "\n"
                                               R"({"prompt":"q","chosen":"a","rejected":"b"})"
                                               "\n");
  SampleReader reader(path, {.task = "dpo"}, BadRows::Error);
  EXPECT_EQ(reader.next()->prompt, "p");
  EXPECT_EQ(reader.next()->index, 1);
  EXPECT_EQ(reader.ranked_lists(), "");
  SampleReader forced(folder.write("lists.jsonl", std::string(kFour) + "\n"), {.schema = "ranked"},
                      BadRows::Error);
  EXPECT_EQ(forced.next()->rejected, "worst");
}

}  // namespace
}  // namespace convoy::data
