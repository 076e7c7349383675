// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/results/kept_solutions.h"

#include <gtest/gtest.h>

#include "convoy/farm/process/pipeline/row_pipeline.h"

namespace convoy::process {
namespace {

using Json = nlohmann::ordered_json;

PipelinePlan plan_of(const std::string& chat, const std::string& prompt = "Q: {{ problem }}",
                     int64_t samples = 1) {
  settings::ProcessSettings settings;
  settings.stages = {"generate", "verify"};
  settings.generate.n = samples;
  settings.prompts.chat = chat;
  settings.prompts.opens_think = "no";
  return PipelinePlan(
      settings,
      {{"generate", prompt}, {"evaluate", "{{ reasoning }}"}, {"improve", "{{ feedback }}"}});
}

// The output of `plan` for one problem, whose solutions are `texts`; one that begins with ~ is cut.
Json output_of(const PipelinePlan& plan, const std::vector<std::string>& texts,
               const std::string& answer = "#### 4") {
  std::vector<KeptStep> kept;
  for (const std::string& text : texts) {
    const bool is_cut = text.starts_with('~');
    kept.push_back({.key = fmt::format("generate/{}", kept.size()),
                    .result = {.finish = is_cut ? TextFinish::Length : TextFinish::Stop,
                               .text = is_cut ? text.substr(1) : text}});
  }
  const InputRow input{.value = {{"question", "2 + 2?"}, {"answer", answer}, {"unit", "kg"}}};
  return RowPipeline(plan).next(input, kept).finished->value;
}

std::vector<Json> kept_of(const PipelinePlan& plan, const Json& row, int64_t most = 4) {
  std::vector<Json> rows;
  keep_solutions(plan, row, most, [&](const Json& kept) { rows.push_back(kept); });
  return rows;
}

TEST(KeptSolutions, AreRightWholeAndDistinctTheShortestFirst) {
  const std::vector<std::string> texts = {"so it is #### 4",   "#### 5", "2 + 2 = 4\n#### 4",
                                          "2 + 2 =  4 #### 4", "#### 4", "~well #### 4"};
  const PipelinePlan plan = plan_of("off", "Q: {{ problem }}", std::ssize(texts));
  const Json row = output_of(plan, texts);
  const std::vector<Json> rows = kept_of(plan, row);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].dump(), R"({"prompt":"Q: 2 + 2?","completion":"#### 4"})");
  EXPECT_EQ(rows[1]["completion"], "so it is #### 4");
  EXPECT_EQ(rows[2]["completion"], "2 + 2 = 4\n#### 4") << "white space alone makes no other text";
  EXPECT_EQ(kept_of(plan, row, 2).size(), 2U);
  AnswerCounts counts;
  count_answers(row, counts);
  EXPECT_EQ(counts.problems, 1);
  EXPECT_EQ(counts.solved, 1);
  EXPECT_EQ(counts.samples, 6);
  EXPECT_EQ(counts.right_samples, 4);
}

TEST(KeptSolutions, AreShortInCharacters) {
  const PipelinePlan plan = plan_of("off", "Q: {{ problem }}", 2);
  const std::vector<Json> rows =
      kept_of(plan, output_of(plan, {"so so so #### 4", "ääääää #### 4"}));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["completion"], "ääääää #### 4") << "more bytes, fewer characters";
}

TEST(KeptSolutions, OfAChatAreAnswersToThePromptThatTheModelHad) {
  PipelinePlan plan = plan_of("on", "{{ problem }} In {{ row.unit }}.");
  plan.settings.prompts.system = "Be brief.";
  const std::vector<Json> rows = kept_of(plan, output_of(plan, {"#### 4"}));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(
      rows[0].dump(),
      R"({"messages":[{"role":"system","content":"Be brief."},)"
      R"({"role":"user","content":"2 + 2? In kg."},{"role":"assistant","content":"#### 4"}]})");
}

TEST(KeptSolutions, HaveTheirThoughts) {
  const PipelinePlan chat = plan_of("on");
  EXPECT_EQ(kept_of(chat, output_of(chat, {"<think>\ntwo and two</think>#### 4"}))
                .at(0)["messages"][1]["content"],
            "<think>\ntwo and two\n</think>\n\n#### 4");
  const PipelinePlan plain = plan_of("off", "{{ problem }}\n<think>");
  EXPECT_EQ(kept_of(plain, output_of(plain, {"two and two</think>#### 4"})).at(0)["completion"],
            "\ntwo and two\n</think>\n\n#### 4");
  const PipelinePlan on_a_line = plan_of("off", "{{ problem }}\n<think>\n\n");
  EXPECT_EQ(
      kept_of(on_a_line, output_of(on_a_line, {"two and two</think>#### 4"})).at(0)["completion"],
      "two and two\n</think>\n\n#### 4");
}

TEST(KeptSolutions, WithoutATextAreNeitherCountedNorKept) {
  const PipelinePlan plan = plan_of("off", "Q: {{ problem }}", 3);
  Json row = output_of(plan, {"#### 4", "two and two: #### 4", "so #### 4"});
  // The row itself has the text of its own sample.
  for (Json* const texts : {&row, &row["samples"][0], &row["samples"][1]})
    if (texts->contains("reasoning")) (*texts)["reasoning"] = nullptr;
  AnswerCounts counts;
  count_answers(row, counts);
  EXPECT_EQ(counts.samples, 3);
  EXPECT_EQ(counts.right_samples, std::ssize(kept_of(plan, row)));
  EXPECT_LT(counts.right_samples, 3);
}

TEST(KeptSolutions, OfAProblemWithoutAnswerAreNone) {
  const PipelinePlan plan = plan_of("off");
  const Json row = output_of(plan, {"#### 4"}, "");
  EXPECT_TRUE(kept_of(plan, row).empty());
  AnswerCounts counts;
  count_answers(row, counts);
  EXPECT_EQ(counts.problems, 0);
  EXPECT_EQ(counts.accuracy(), 0);
}

}  // namespace
}  // namespace convoy::process
