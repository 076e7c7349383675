// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/results/training_rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/formats/row_source.h"
#include "convoy/farm/process/pipeline/pipeline_plan.h"
#include "files/temporary_folder.h"

namespace convoy::process {
namespace {

using Json = nlohmann::ordered_json;
using settings::PairSettings;

struct Sampled {
  std::string text;
  std::string verified = "yes";
  Json score = nullptr;
  std::string finish = "stop";
  std::string think = "";
};

// A row of the output. The first sample is the row's answer.
Json row_with(const std::vector<Sampled>& samples) {
  Json row = {{"problem", "1 + 1?"},
              {"reasoning", nullptr},
              {"think", nullptr},
              {"sample", 0},
              {"source_index", 41},
              {"state", "ok"},
              {"metadata", {{"original_data", {{"question", "1 + 1?"}, {"level", 3}}}}}};
  row["samples"] = Json::array();
  for (size_t number = 0; number < samples.size(); ++number) {
    const Sampled& sample = samples[number];
    Json entry = {{"sample", number},
                  {"finish", sample.finish},
                  {"verified", sample.verified.empty() ? Json(nullptr) : Json(sample.verified)},
                  {"quality_score", sample.score}};
    Json& texts = number == 0 ? row : entry;
    texts["reasoning"] = sample.text;
    texts["think"] = sample.think.empty() ? Json(nullptr) : Json(sample.think);
    row["samples"].push_back(entry);
  }
  return row;
}

// "chosen>rejected ..." and the reason without a pair.
std::string paired(const std::vector<Sampled>& samples, const PairSettings& wanted) {
  TrainingCounts counts;
  const auto solutions = solutions_of(row_with(samples), counts);
  std::string text;
  for (const auto& [chosen, rejected] : pairs_of(solutions, wanted, counts))
    text += fmt::format("{}>{} ", chosen.said, rejected.said);
  for (const auto& [reason, problems] : counts.without) text += "without " + reason;
  return text;
}

TEST(TrainingRows, ARightSolutionIsChosenAndAWrongOneRejected) {
  const std::vector<Sampled> samples = {
      {"w1", "no"}, {"right", "yes"}, {"u", "unknown"}, {"r2", "yes"}, {"wrong2", "no"}};
  EXPECT_EQ(paired(samples, {}), "right>w1 ");
  EXPECT_EQ(paired(samples, {.path = {}, .chosen = "shortest", .rejected = "longest"}),
            "r2>wrong2 ");
  EXPECT_EQ(paired(samples, {.path = {}, .per_problem = 2}), "right>w1 r2>wrong2 ");
  EXPECT_EQ(paired(samples, {.path = {}, .per_problem = 9}),
            "right>w1 r2>wrong2 right>wrong2 r2>w1 ");
  EXPECT_EQ(paired({{"r", "yes"}, {"a", "no"}, {"b", "no"}}, {.path = {}, .per_problem = 9}),
            "r>a r>b ");
  EXPECT_EQ(paired({{"r", "yes"}, {"s", "yes"}, {"a", "no"}}, {.path = {}, .per_problem = 9}),
            "r>a s>a ");
}

TEST(TrainingRows, AProblemWithoutAPairSaysWhy) {
  EXPECT_EQ(paired({{"a"}, {"b"}}, {}), "without a wrong solution");
  EXPECT_EQ(paired({{"a", "no"}, {"b", "unknown"}}, {}), "without a right solution");
  EXPECT_EQ(paired({{"a", ""}, {"b", ""}}, {}), "without a reference");
  EXPECT_EQ(paired({{"a", "yes", nullptr, "length"}, {" \n", "no"}}, {}),
            "without a whole solution");
  EXPECT_EQ(paired({{"a", "yes", 0.5}, {"b", "no"}}, {.path = {}, .by = "score"}),
            "without two scored solutions");
  EXPECT_EQ(paired({{"a", "yes", 0.5}, {"b", "no", 0.5}}, {.path = {}, .by = "score"}),
            "without scores that differ");
}

TEST(TrainingRows, ByScoreTheBestStandsBesideTheWorst) {
  const std::vector<Sampled> samples = {
      {"mid", "no", 0.5}, {"worst", "yes", 0.1}, {"best", "", 0.9}, {"good", "no", 0.75}, {"?"}};
  EXPECT_EQ(paired(samples, {.path = {}, .by = "score"}), "best>worst ");
  EXPECT_EQ(paired(samples, {.path = {}, .by = "score", .per_problem = 5}), "best>worst good>mid ");
  EXPECT_EQ(paired(samples, {.path = {}, .by = "score", .per_problem = 5, .margin = 0.3}),
            "best>worst ");
  EXPECT_EQ(paired({{"aaa", "", 1.0}, {"a", "", 1.0}, {"b", "", 0.0}, {"bbb", "", 0.0}},
                   {.path = {}, .by = "score", .chosen = "shortest", .rejected = "longest"}),
            "a>bbb ");
}

TEST(TrainingRows, OnlyWholeAndDistinctTextsCount) {
  TrainingCounts counts;
  const auto solutions = solutions_of(row_with({{"a"},
                                                {"a"},
                                                {"a", "yes", nullptr, "stop", "thought"},
                                                {"cut", "no", nullptr, "length"},
                                                {"lost", "no", nullptr, "error"}}),
                                      counts);
  ASSERT_EQ(solutions.size(), 2u);
  EXPECT_EQ(solutions[1].think, "thought");
  EXPECT_EQ(solutions[1].characters, 8);
  EXPECT_EQ(counts.repeated, 1);
  EXPECT_EQ(counts.cut, 1);
  counts.rows = 3, counts.with_rows = 2, counts.without = {{"a right solution", 1}};
  EXPECT_EQ(training_text(counts.json()),
            "3 of 2 problems; 1 problem without a right solution; 1 sample with the text of "
            "another one left out; 1 sample without a whole text left out");
}

TEST(TrainingRows, TextsThatDifferInWhiteSpaceAloneAreOne) {
  TrainingCounts counts;
  const auto solutions = solutions_of(
      row_with({{"a b\n"}, {" a  b"}, {"ab"}, {"a b", "yes", nullptr, "stop", "a"}}), counts);
  ASSERT_EQ(solutions.size(), 3u);
  EXPECT_EQ(solutions[0].said, "a b\n");
  EXPECT_EQ(solutions[1].said, "ab");
  EXPECT_EQ(counts.repeated, 1);
}

class TrainingFiles : public ::testing::Test {
 protected:
  TrainingFiles() {
    settings_.prompts.chat = "on";
    settings_.prompts.system = "Think.";
    settings_.generate.n = 4;
    settings_.stages = {"generate", "verify"};
    settings_.pairs.path = (folder_ / "pairs.jsonl").string();
    settings_.answers.path = (folder_ / "right.jsonl").string();
  }

  PipelinePlan plan() const {
    return {settings_,
            {{"generate", "Q{{ row.level }}: {{ problem }}"},
             {"evaluate", "{{ reasoning }}"},
             {"improve", "{{ feedback }}"}}};
  }
  std::vector<Json> written(const std::string& file, const std::vector<Json>& rows) {
    const PipelinePlan wanted = plan();
    TrainingRows training(wanted);
    for (const Json& row : rows) training.add(row);
    training.finish();
    std::vector<Json> all;
    const auto source = data::open_rows(folder_ / file);
    while (auto row = source->next()) all.push_back(std::move(row->value));
    return all;
  }
  std::string refusal() const {
    try {
      check_training_rows(settings_);
    } catch (const ConfigError& error) {
      EXPECT_FALSE(error.location().hint.empty());
      return error.what();
    }
    return "none";
  }

  testing::TemporaryFolder folder_;
  settings::ProcessSettings settings_;
};

TEST_F(TrainingFiles, APairHasThePromptThatTheModelReadAndWhereItComesFrom) {
  const Json row = row_with({{"is 3", "no"}, {"is 2", "yes", 0.5, "stop", "one more"}});
  Json rejected = row;
  rejected["state"] = "rejected";
  const std::vector<Json> pairs = written("pairs.jsonl", {row, rejected});
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].dump(),
            R"({"prompt":[{"role":"system","content":"Think."},)"
            R"({"role":"user","content":"Q3: 1 + 1?"}],)"
            R"("chosen":[{"role":"assistant","content":"is 2","reasoning_content":"one more"}],)"
            R"("rejected":[{"role":"assistant","content":"is 3"}],"problem_id":41,)"
            R"("sample_chosen":1,"sample_rejected":0,"score_chosen":0.5,"score_rejected":null,)"
            R"("length_chosen":12,"length_rejected":4})");
  const std::vector<Json> answers = written("right.jsonl", {row});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0]["completion"], pairs[0]["chosen"]);
  EXPECT_EQ(answers[0].size(), 2u);
}

TEST_F(TrainingFiles, PlainTextsStayTexts) {
  settings_.prompts.chat = "off";
  const std::vector<Json> pairs = written(
      "pairs.jsonl", {row_with({{"\n 3", "no"}, {"2", "yes", nullptr, "stop", "one more"}})});
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0]["prompt"], "Q3: 1 + 1?");
  EXPECT_EQ(pairs[0]["chosen"], "<think>\none more\n</think>\n\n2");
  EXPECT_EQ(pairs[0]["rejected"], "\n 3");
}

TEST_F(TrainingFiles, WhatCanMakeNoRowIsRefusedByName) {
  EXPECT_EQ(refusal(), "none");
  settings_.generate.n = 1;
  EXPECT_NE(refusal().find("pairs.path: one solution"), std::string::npos) << refusal();
  settings_.generate.n = 4;
  settings_.stages = {"generate"};
  EXPECT_NE(refusal().find("pairs.by: no stage computes it: stages has no verify"),
            std::string::npos)
      << refusal();
  settings_.stages = {"generate", "verify", "vote", "evaluate"};
  settings_.pairs.by = "score";
  EXPECT_NE(refusal().find("evaluate stands behind vote"), std::string::npos) << refusal();
  settings_.pairs.by = "verified";
  settings_.pairs.margin = 0.1;
  EXPECT_NE(refusal().find("pairs.margin: only pairs by score"), std::string::npos) << refusal();
  settings_.pairs.path.clear();
  EXPECT_NE(refusal().find("pairs: no pairs are written"), std::string::npos) << refusal();
  settings_.pairs = {};
  settings_.answers = {.path = {}, .per_problem = 2};
  EXPECT_NE(refusal().find("answers: no solutions are written"), std::string::npos) << refusal();
}

Json solved_row(int64_t index, const Json& difficulty) {
  Json row = row_with({{"is 2"}});
  row["source_index"] = index;
  row["gold"] = "2";
  row["difficulty"] = difficulty;
  return row;
}

TEST_F(TrainingFiles, AProblemHasItsAnswerDifficultyAndOtherColumns) {
  Json row = solved_row(7, 0.25);
  row["metadata"]["original_data"] = {
      {"question", "1 + 1?"}, {"answer", "1 + 1 #### 2"}, {"options", "A) 2"}, {"tests", {3}}};
  settings_ = {};
  settings_.problems.path = folder_ / "problems.jsonl";
  EXPECT_EQ(refusal(), "none");
  const std::vector<Json> problems = written("problems.jsonl", {row});
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].dump(),
            R"({"problem":"1 + 1?","answer":"2","difficulty":0.25,"problem_id":7,)"
            R"("question":"1 + 1?","tests":[3]})");
}

TEST_F(TrainingFiles, ProblemsAreChosenByTheirDifficulty) {
  settings_ = {};
  settings_.problems = {
      .path = folder_ / "problems.jsonl", .min_difficulty = 0.1, .max_difficulty = 0.9};
  Json rejected = solved_row(6, 0.5);
  rejected["state"] = "rejected";
  std::vector<int64_t> ids;
  for (const Json& row :
       written("problems.jsonl", {solved_row(1, 0.0), solved_row(2, 0.1), solved_row(3, 0.9),
                                  solved_row(4, 1.0), solved_row(5, nullptr), rejected}))
    ids.push_back(row["problem_id"]);
  EXPECT_EQ(ids, (std::vector<int64_t>{2, 3}));
  settings_.problems.min_difficulty = 0.95;
  EXPECT_NE(refusal().find("above problems.max_difficulty"), std::string::npos) << refusal();
  settings_.problems.min_difficulty = 0.5;
  settings_.stages = {"generate"};
  EXPECT_NE(refusal().find("no stage computes it: stages has no verify"), std::string::npos)
      << refusal();
  settings_.problems.path.clear();
  EXPECT_NE(refusal().find("no problems are written"), std::string::npos) << refusal();
}

// Rows of a finished run make pairs without a new run: they are no part of what decides a row.
TEST_F(TrainingFiles, AreNoPartOfWhatDecidesARow) {
  const nlohmann::json with = plan().content("m");
  settings_.pairs = {};
  settings_.answers = {};
  settings_.problems = {};
  EXPECT_EQ(plan().content("m"), with);
}

}  // namespace
}  // namespace convoy::process
