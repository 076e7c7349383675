// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/parsing/problem_fields.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/sources/dataset.h"

namespace convoy::process {
namespace {

using Json = nlohmann::ordered_json;

RowFields read(const char* row, const ProblemFields& fields = ProblemFields()) {
  return fields.read(Json::parse(row));
}

void expect_fields(const RowFields& found, const std::string& problem,
                   const std::optional<std::string>& solution,
                   const std::vector<std::string>& answers) {
  EXPECT_EQ(found.problem, problem);
  EXPECT_EQ(found.solution, solution);
  EXPECT_EQ(found.answers, answers);
}

std::string refusal(const char* row, const ProblemFields& fields = ProblemFields()) {
  try {
    read(row, fields);
  } catch (const DataError& error) {
    return error.sentence();
  }
  ADD_FAILURE() << row << " was read without an error";
  return {};
}

TEST(ProblemFields, SchemasAreReadByTheirKeys) {
  expect_fields(read(R"({"source": "s", "problem": "p", "solution": "so", "messages": []})"), "p",
                "so", {});
  expect_fields(
      read(R"({"problem": "p", "solution": "so", "answer": "\\frac12", "synthetic": false})"), "p",
      "so", {"\\frac12"});
  expect_fields(read(R"({"question": "q", "answer": "1+1=2\n#### 2"})"), "q", "1+1=2\n#### 2", {});
  expect_fields(read(R"({"question": "q", "answer": "2"})"), "q", {}, {"2"});
  expect_fields(read(R"({"question": "q", "answer": 2})"), "q", {}, {"2"});
  expect_fields(
      read(R"({"Problem": "p", "Rationale": "r", "options": "a ) 1 , b ) 2", "correct": "a"})"),
      "p\nOptions:\na ) 1 , b ) 2", "r", {"a"});
  expect_fields(
      read(R"({"question": "q", "options": ["A)1", "B)2"], "rationale": "r", "correct": "B"})"),
      "q\nOptions:\nA)1\nB)2", "r", {"B"});
  expect_fields(
      read(R"row({"body": "There are 3.", "question": "How many?", "answer": "3 (apples)"})row"),
      "There are 3. How many?", {}, {"3 (apples)"});
  expect_fields(
      read(R"({"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "u"},
                         {"role": "assistant", "content": "first"}, {"role": "assistant", "content": "a"}]})"),
      "u", "a", {});
}

TEST(ProblemFields, RowsOfNuminaMathFromParquet) {
  const char* const root = std::getenv("CONVOY_SOURCE_DIR");
  const std::filesystem::path golden =
      std::filesystem::path(root == nullptr ? "." : root) / "tests" / "golden" / "datasets";
  const auto read_set = [&](const char* name, const char* key) {
    const auto rows = data::open_dataset(data::find_dataset({.name = (golden / name).string()}));
    const ProblemFields fields(data::find_known_dataset(key));
    std::vector<std::optional<RowFields>> read;
    while (const auto row = rows->next()) {
      try {
        read.emplace_back(fields.read(row->value));
      } catch (const DataError&) {
        read.emplace_back();
      }
    }
    return read;
  };
  const auto cot = read_set("numina_cot", "numina_math_cot");
  ASSERT_EQ(cot.size(), 12u);
  expect_fields(*cot[0], "Find $2x + 1 = 7$ for $x$ 🙂.",
                "Subtract 1, divide by 2: $x = \\boxed{3}$", {});
  const auto numina = read_set("numina_15", "numina_math");
  ASSERT_EQ(numina.size(), 10u);
  EXPECT_EQ(numina[0]->answers, std::vector<std::string>{"3"});
  EXPECT_EQ(numina[4]->answers, std::vector<std::string>{"\\frac{1}{2}"});
  for (const size_t without : {1u, 2u, 3u, 5u})
    EXPECT_TRUE(numina[without]->answers.empty()) << without;
  for (size_t row = 0; row < 10; ++row) EXPECT_EQ(numina[row].has_value(), row != 7) << row;
}

TEST(ProblemFields, WhatStandsForNoAnswerIsNone) {
  for (const char* answer : {"\"proof\"", "\"notfound\"", "\"\"", "\" \"", "null"}) {
    const std::string row =
        fmt::format(R"({{"problem": "p", "solution": "s", "answer": {}}})", answer);
    expect_fields(read(row.c_str()), "p", "s", {});
  }
  expect_fields(read(R"({"problem": "p", "solution": ""})"), "p", {}, {});
}

TEST(ProblemFields, NamesComeBeforeTheCatalogAndTheKeys) {
  const auto* const gsm8k = data::find_known_dataset("gsm8k");
  const auto* const asdiv = data::find_known_dataset("mawic/asdiv");
  ASSERT_NE(gsm8k, nullptr);
  ASSERT_NE(asdiv, nullptr);
  const char* row = R"({"task": "t", "question": "q", "problem": "p", "answer": "a", "body": "b"})";
  expect_fields(read(row), "p", {}, {"a"});
  expect_fields(read(row, ProblemFields(gsm8k)), "q", "a", {});
  expect_fields(read(row, ProblemFields(asdiv)), "b q", {}, {"a"});
  expect_fields(
      read(row, ProblemFields(gsm8k, {.problem = "task", .solution = "p", .answer = "body"})), "t",
      {}, {"b"});
  // The user's own file may have a name of the catalog.
  expect_fields(read(R"({"problem": "p", "solution": "s"})", ProblemFields(gsm8k)), "p", "s", {});
}

TEST(ProblemFields, ARowWithoutAProblemSaysWhatItHas) {
  EXPECT_NE(refusal(R"({"text": "t", "label": 1})").find("its keys are `text`, `label`"),
            std::string::npos);
  EXPECT_NE(refusal("{}").find("--problem-field"), std::string::npos);
  for (const char* row : {R"({"problem": null})", R"({"problem": " \n"})", R"({"messages": []})",
                          R"({"problem": ["a"]})", R"({"problem": true})", "[1]", "3"})
    EXPECT_FALSE(refusal(row).empty()) << row;
  EXPECT_FALSE(refusal(R"({"problem": "p"})", ProblemFields(nullptr, {.problem = "task"})).empty());
}

// `convoy train` has no flags for columns.
TEST(ProblemFields, HintsNameTheKeysOfASection) {
  const ProblemFields fields(nullptr, {.section = "rollout"});
  EXPECT_NE(refusal("{}", fields).find("rollout.problem_field"), std::string::npos);
  const std::string of_type = refusal(R"({"problem": ["a"]})", fields);
  EXPECT_NE(of_type.find("rollout.problem_field or rollout.answer_field"), std::string::npos)
      << of_type;
  EXPECT_EQ(of_type.find("--"), std::string::npos) << of_type;
}

TEST(ProblemFields, WhateverTheAnswerIsTheRowCanBeUsed) {
  using Texts = std::vector<std::string>;
  const auto answers_of = [](const std::string& answer) {
    return read(fmt::format(R"({{"problem": "p", "answer": {}}})", answer).c_str()).answers;
  };
  EXPECT_EQ(answers_of("true"), Texts{"true"});
  EXPECT_EQ(answers_of("0.5"), Texts{"0.5"});
  EXPECT_EQ(answers_of(R"(["1/2", 0.5, null, " ", "proof", true])"), (Texts{"1/2", "0.5", "true"}));
  EXPECT_EQ(answers_of(R"(["1 #### 2", "3"])"), (Texts{"1 #### 2", "3"}));
  for (const char* none : {"[]", "{}", R"({"a": 1})", R"([["x"], {"a": 1}])", "null"})
    EXPECT_EQ(answers_of(none), Texts{}) << none;
  // The rows of OlympiadBench have lists of solutions and of answers.
  expect_fields(read(R"({"question": "q", "solution": ["s", "t"], "final_answer": ["2"]})"), "q",
                "s", {"2"});
  expect_fields(read(R"({"question": "q", "solution": {"a": 1}})"), "q", {}, {});
}

}  // namespace
}  // namespace convoy::process
