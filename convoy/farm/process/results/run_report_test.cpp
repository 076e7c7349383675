// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/results/run_report.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace convoy::process {
namespace {

using Json = nlohmann::ordered_json;

Json sample(const char* first, const char* now) {
  return {{"verified", now}, {"first_verified", first}};
}

Json row(const char* state, const Json& verified, const Json& samples,
         const Json& score = nullptr) {
  return {
      {"state", state},
      {"verified", verified},
      {"quality_score", score},
      {"accepted", score.is_null() ? Json(nullptr) : Json(score >= 0.8)},
      {"scores", {{"parsed", !score.is_null()}}},
      {"version", 0},
      {"samples", samples},
      {"tokens", {{"prompt", 10}, {"new", 20}, {"by_stage", {{"generate", 15}, {"evaluate", 5}}}}}};
}

TEST(RunReport, CountsRowsAnswersAndCost) {
  RunReport report;
  // The vote chose the right one of three samples; then no sample was right; then there is no
  // reference.
  report.add(
      row("ok", "yes", {sample("yes", "yes"), sample("yes", "yes"), sample("no", "no")}, 0.9));
  report.add(
      row("truncated", "no", {sample("no", "no"), sample("no", "no"), sample("no", "no")}, 0.5));
  report.add(row("ok", nullptr, Json::array()));
  const Json told = report.json({.seconds = 6,
                                 .workers = 2,
                                 .rows = 3,
                                 .new_tokens = 60,
                                 .seconds_by_stage = {{"generate", 9}, {"evaluate", 3}}},
                                {.new_tokens = 240});
  EXPECT_EQ(told["rows_by_state"], Json({{"ok", 2}, {"truncated", 1}}));
  EXPECT_DOUBLE_EQ(told["accuracy"]["rows"], 0.5);
  EXPECT_EQ(told["accuracy"]["with_reference"], 2);
  EXPECT_DOUBLE_EQ(told["accuracy"]["samples"], 2.0 / 6);
  EXPECT_DOUBLE_EQ(told["accuracy"]["any_sample"], 0.5);
  EXPECT_DOUBLE_EQ(told["accuracy"]["choice_gain"], 0.5 - 2.0 / 6);
  EXPECT_EQ(told["judgements"]["accepted"], 1);
  EXPECT_EQ(told["judgements"]["unread"], 1);
  EXPECT_DOUBLE_EQ(told["judgements"]["mean_score"], 0.7);
  EXPECT_EQ(told["tokens"]["new"], 60);
  EXPECT_DOUBLE_EQ(told["last_start"]["tokens_per_second"], 10);
  EXPECT_DOUBLE_EQ(told["last_start"]["seconds_by_stage"]["generate"], 4.5);
  EXPECT_DOUBLE_EQ(told["estimate"]["share_used"], 0.25);
}

TEST(RunReport, AveragesPassAtKOverTheRowsThatHaveIt) {
  RunReport report;
  for (const char* const estimates :
       {R"({"1": 0.5, "2": 1.0})", R"({"1": 0.0, "2": 0.0})", R"({"1": 1.0})", "null"}) {
    Json made = row("ok", "yes", {sample("yes", "yes")});
    made["pass_at_k"] = Json::parse(estimates);
    report.add(made);
  }
  const Json told = report.json({}, {});
  EXPECT_EQ(told["pass_at_k"]["1"], Json({{"mean", 0.5}, {"rows", 3}}));
  EXPECT_EQ(told["pass_at_k"]["2"], Json({{"mean", 0.5}, {"rows", 2}}));
  const std::vector<std::string> lines = report_lines(told);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "pass@k     1: 50.0 %, 2: 50.0 %"), 1);
}

TEST(RunReport, SaysNoPassAtKOfSingleSamples) {
  RunReport report;
  Json made = row("ok", "yes", {sample("yes", "yes")});
  made["pass_at_k"] = {{"1", 1.0}};
  report.add(made);
  EXPECT_TRUE(report.json({}, {})["pass_at_k"].is_null());
}

TEST(RunReport, SaysWhyJudgementsAreUnread) {
  RunReport report;
  Json cut = row("ok", nullptr, Json::array());
  cut["scores"]["finish"] = "length";
  Json loose = row("ok", nullptr, Json::array());
  loose["scores"]["finish"] = "stop";
  report.add(cut);
  report.add(loose);
  const std::vector<std::string> lines = report_lines(report.json({}, {}));
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find(
               "2 unread (1 cut at evaluate.max_tokens, 1 without a score for each "
               "criterion of evaluate.weights)") != std::string::npos;
  }));
}

TEST(RunReport, SaysNothingOfWhatIsNotThere) {
  RunReport report;
  Json bad = row("bad_input", nullptr, Json::array());
  bad["scores"] = nullptr;
  report.add(bad);
  const Json told = report.json({}, {});
  EXPECT_TRUE(told["accuracy"].is_null());
  EXPECT_TRUE(told["last_start"].is_null());
  for (const std::string& line : report_lines(told)) {
    EXPECT_FALSE(line.starts_with("answers")) << line;
    EXPECT_FALSE(line.starts_with("speed")) << line;
  }
}

// A row with a reference and no text counts as a row that was not right.
TEST(RunReport, RowsWithoutATextCountAgainstTheAccuracy) {
  RunReport report;
  report.add(row("ok", "yes", Json::array()));
  for (const char* reason : {"prompt 1 has 5 tokens too many", "prompt 22 has 17 tokens too many",
                             "the model's logits are not finite"}) {
    Json failed = row("engine_error", nullptr, Json::array());
    failed["gold"] = "7";
    failed["metadata"] = {{"error", reason}};
    report.add(failed);
  }
  const Json told = report.json({}, {});
  EXPECT_DOUBLE_EQ(told["accuracy"]["rows"], 0.25);
  EXPECT_EQ(told["accuracy"]["with_reference"], 4);
  EXPECT_EQ(told["failures"]["rows"], 3);
  EXPECT_EQ(told["failures"]["of_rows"], 2);
  EXPECT_EQ(told["failures"]["most_common"], "prompt 1 has 5 tokens too many");
  EXPECT_FALSE(report.all_failed());
  const std::vector<std::string> lines = report_lines(told);
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.starts_with("failed") && line.find("tokens too many") != std::string::npos;
  }));
}

TEST(RunReport, KnowsWhenEveryRowFailed) {
  RunReport report;
  EXPECT_FALSE(report.all_failed());
  report.add(row("engine_error", nullptr, Json::array()));
  report.add(row("bad_input", nullptr, Json::array()));
  EXPECT_TRUE(report.all_failed());
  report.add(row("truncated", nullptr, Json::array()));
  EXPECT_FALSE(report.all_failed());
}

// The seconds and the stages belong to the last start, not to the starts that it continued.
TEST(RunReport, SaysThatTheSpeedIsOfTheLastStart) {
  RunReport report;
  report.add(row("ok", nullptr, Json::array()));
  report.add(row("ok", nullptr, Json::array()));
  const Json told = report.json(
      {.seconds = 2, .workers = 1, .rows = 1, .new_tokens = 9, .seconds_by_stage = {{"vote", 1}}},
      {});
  EXPECT_EQ(told["last_start"]["seconds_by_stage"], Json({{"vote", 2.0}}));
  const std::vector<std::string> lines = report_lines(told);
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("(the last start: 1 row)") != std::string::npos;
  }));
}

// `runs show` reads the report back from a file, in which the keys are sorted.
TEST(RunReport, LinesCanBeMadeOfAReportThatWasStored) {
  RunReport report;
  report.add(row("ok", "yes", {sample("no", "yes")}, 1.0));
  const Json told = report.json({.seconds = 1, .workers = 1, .rows = 1, .new_tokens = 20}, {});
  const nlohmann::json sorted = nlohmann::json::parse(told.dump());
  const std::vector<std::string> lines = report_lines(Json::parse(sorted.dump()));
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("100.0 % of 1 row right") != std::string::npos;
  }));
}

}  // namespace
}  // namespace convoy::process
