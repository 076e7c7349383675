// SPDX-License-Identifier: Apache-2.0
//
// Whole rows through the stages, with texts from a function in place of a model.
#include "convoy/farm/process/pipeline/row_pipeline.h"

#include <gtest/gtest.h>

#include <set>

#include "convoy/core/base/error.h"
#include "convoy/farm/process/pipeline/row_values.h"

namespace convoy::process {
namespace {

using Json = nlohmann::ordered_json;
using Answer = std::function<std::string(const std::string& key, const TextRequest& request)>;

const PromptTexts kPrompts = {{"generate", "Q: {{ problem }}"},
                              {"evaluate", "Judge {{ reasoning }} ({{ solution }})"},
                              {"improve", "Improve {{ current_solution }} by {{ feedback }}"}};

RowPipeline pipeline_of(settings::ProcessSettings settings, bool chat_opens_think = false) {
  settings.prompts.chat = "on";
  settings.prompts.opens_think = chat_opens_think ? "yes" : "no";
  return RowPipeline(PipelinePlan(std::move(settings), kPrompts));
}

std::string judged(double score) {
  return fmt::format(
      "Correctness: {0}\nStep-by-step clarity: {0}\nLogical coherence: {0}\nMathematical "
      "precision: "
      "{0}",
      score);
}

struct Way {
  FinishedRow row;
  std::vector<std::string> keys;      // in the order asked for
  std::vector<TextRequest> requests;  // in the order asked for
};

// Finishes one text at a time, the newest first, so that samples run ahead of each other.
Way run(const RowPipeline& pipeline, const InputRow& input, const Answer& answer) {
  Way result;
  std::vector<KeptStep> kept;
  for (int guard = 0; guard < 1000; ++guard) {
    NextSteps next = pipeline.next(input, kept);
    if (next.finished) {
      EXPECT_TRUE(next.steps.empty());
      result.row = *next.finished;
      return result;
    }
    if (next.steps.empty()) break;
    const Step& step = next.steps.back();
    result.keys.push_back(step.key);
    result.requests.push_back(step.request);
    std::string text = answer(step.key, step.request);
    TextFinish finish = TextFinish::Stop;
    std::string error;
    if (text.starts_with("CUT ")) finish = TextFinish::Length;
    if (text.starts_with("FAIL ")) finish = TextFinish::Error, error = text, text = "";
    kept.push_back(
        {.key = step.key,
         .result = {
             .finish = finish, .text = text, .error = error, .prompt_tokens = 5, .new_tokens = 7}});
  }
  ADD_FAILURE() << "the row did not end";
  return result;
}

InputRow input_of(const Json& value) { return {.index = 3, .source_index = 13, .value = value}; }

const Json kPipelineRow = {{"problem", "6*7"}, {"solution", "It is \\boxed{42}"}};

TEST(RowPipeline, AnAcceptedRowTakesTwoTexts) {
  const Way got =
      run(pipeline_of({}), input_of(kPipelineRow), [](const std::string& key, const auto&) {
        return key.starts_with("generate") ? "6*7 is \\boxed{42}" : judged(0.9);
      });
  EXPECT_EQ(got.keys, (std::vector<std::string>{"generate/0", "evaluate/0/0"}));
  const Json& row = got.row.value;
  EXPECT_EQ(got.row.state, "ok");
  EXPECT_EQ(row["problem"], "6*7");
  EXPECT_EQ(row["solution"], "42");
  EXPECT_EQ(row["reasoning"], "6*7 is \\boxed{42}");
  EXPECT_EQ(row["quality_score"], 0.9);
  EXPECT_EQ(row["metadata"]["original_data"], kPipelineRow);
  EXPECT_TRUE(row["metadata"]["previous_version"].is_null());
  EXPECT_EQ(row["index"], 3);
  EXPECT_EQ(row["source_index"], 13);
  EXPECT_EQ(row["gold"], "42");
  EXPECT_EQ(row["verified"], "yes");
  EXPECT_EQ(row["accepted"], true);
  EXPECT_EQ(row["tokens"]["new"], 14);
  EXPECT_EQ(row["tokens"]["by_stage"]["evaluate"], 7);
}

TEST(RowPipeline, RequestsAreAsTheSettingsSay) {
  settings::ProcessSettings settings;
  settings.generate.n = 2;
  settings.generate.max_tokens = 99;
  settings.prompts.system = "Be brief.";
  const Way got =
      run(pipeline_of(settings), input_of(kPipelineRow), [](const std::string& key, const auto&) {
        return key.starts_with("generate") ? "\\boxed{42}" : judged(0.5);
      });
  std::set<std::pair<uint64_t, int64_t>> draws;
  for (size_t at = 0; at < got.keys.size(); ++at) {
    const TextRequest& request = got.requests[at];
    EXPECT_EQ(request.draw.row, 13);
    EXPECT_TRUE(draws.insert({request.draw.sample, request.draw.row}).second) << got.keys[at];
    EXPECT_EQ(request.sampling.temperature, got.keys[at].starts_with("evaluate") ? 0.3 : 0.2);
    EXPECT_EQ(request.sampling.max_new_tokens, got.keys[at].starts_with("evaluate") ? 1024 : 99);
    EXPECT_EQ(request.prompt.messages[0], Json({{"role", "system"}, {"content", "Be brief."}}));
  }
  // Two samples: one text, its judgement, twice one improvement and its judgement.
  EXPECT_EQ(got.keys.size(), 12u);
}

TEST(RowPipeline, TextsOfASchemaAreReadAsJson) {
  settings::ProcessSettings settings;
  settings.prompts.chat = "on";
  settings.prompts.opens_think = "no";
  settings.evaluate.weights = {{"correctness", 1}};
  const std::string of_judge =
      R"({"properties":{"correctness":{"type":"number"}},"required":["correctness"]})";
  const std::string of_solution = R"({"type":"object"})";
  const RowPipeline pipeline{
      PipelinePlan(settings, kPrompts, {{"generate", of_solution}, {"evaluate", of_judge}})};
  const Way got =
      run(pipeline, input_of(kPipelineRow), [](const std::string& key, const auto&) -> std::string {
        if (key == "evaluate/0/0") return R"({"why": "Correctness: 0.9", "correctness": 0.25})";
        if (key.starts_with("evaluate")) return R"({"correctness": 1})";
        return key == "generate/0" ? R"({"steps": [1, 2], "answer": 41})"
                                   : R"({"steps": [], "answer": "42"})";
      });
  EXPECT_EQ(got.keys, (std::vector<std::string>{"generate/0", "evaluate/0/0", "improve/0/1",
                                                "evaluate/0/1"}));
  EXPECT_EQ(got.requests[0].schema, of_solution);
  EXPECT_EQ(got.requests[1].schema, of_judge);
  EXPECT_EQ(got.requests[2].schema, of_solution) << "an improved solution is a solution";
  const Json& row = got.row.value;
  EXPECT_EQ(row["solution"], "42");
  EXPECT_EQ(row["verified"], "yes");
  EXPECT_EQ(row["quality_score"], 1);
  EXPECT_EQ(row["history"][0]["answer"], "41");
}

TEST(RowPipeline, PlainPromptsHaveNoTurns) {
  settings::ProcessSettings settings;
  settings.prompts.chat = "off";
  const RowPipeline pipeline{PipelinePlan(settings, kPrompts)};
  const NextSteps next = pipeline.next(input_of(kPipelineRow), {});
  EXPECT_TRUE(next.steps.at(0).request.prompt.messages.is_null());
  EXPECT_EQ(next.steps.at(0).request.prompt.text, "Q: 6*7");
}

TEST(RowPipeline, AnImprovedVersionIsKeptWhenItIsBetter) {
  const Way got = run(pipeline_of({}), input_of({{"problem", "p"}}),
                      [](const std::string& key, const TextRequest& request) -> std::string {
                        if (key == "generate/0") return "first";
                        if (key == "evaluate/0/0") return judged(0.6);
                        if (key == "improve/0/1") {
                          const std::string prompt = request.prompt.messages[0]["content"];
                          EXPECT_NE(prompt.find("Improve first"), std::string::npos);
                          EXPECT_NE(prompt.find("Verify the calculations"), std::string::npos);
                          return "second";
                        }
                        return judged(0.9);
                      });
  const Json& row = got.row.value;
  EXPECT_EQ(row["reasoning"], "second");
  EXPECT_EQ(row["version"], 1);
  EXPECT_EQ(row["quality_score"], 0.9);
  EXPECT_EQ(row["metadata"]["previous_version"]["reasoning"], "first");
  EXPECT_EQ(row["metadata"]["previous_version"]["quality_score"], 0.6);
  EXPECT_EQ(row["history"].size(), 1u);
  EXPECT_TRUE(row["verified"].is_null());
  EXPECT_TRUE(row["gold"].is_null());
}

TEST(RowPipeline, AWorseVersionIsHistoryAndNothingElse) {
  const Way got = run(pipeline_of({}), input_of({{"problem", "p"}}),
                      [](const std::string& key, const auto&) -> std::string {
                        if (key == "generate/0") return "first";
                        if (key == "evaluate/0/0") return judged(0.6);
                        if (key.starts_with("improve")) return "worse";
                        return judged(0.2);
                      });
  EXPECT_EQ(got.row.value["reasoning"], "first");
  EXPECT_EQ(got.row.value["version"], 0);
  EXPECT_EQ(got.row.value["history"].size(), 2u);
  EXPECT_EQ(got.row.value["history"][1]["reasoning"], "worse");
}

TEST(RowPipeline, AVerifiedAnswerIsNeverGivenUpForAScore) {
  const Way got = run(pipeline_of({}), input_of(kPipelineRow),
                      [](const std::string& key, const auto&) -> std::string {
                        if (key == "generate/0") return "\\boxed{42}";
                        if (key == "evaluate/0/0") return judged(0.1);
                        if (key.starts_with("improve")) return "\\boxed{41}";
                        return judged(1.0);
                      });
  EXPECT_EQ(got.row.value["solution"], "42");
  EXPECT_EQ(got.row.value["verified"], "yes");
}

TEST(RowPipeline, AWrongAnswerIsImprovedWhateverTheJudgeSays) {
  const Way got = run(pipeline_of({}), input_of(kPipelineRow),
                      [](const std::string& key, const auto&) -> std::string {
                        if (key == "generate/0") return "\\boxed{41}";
                        if (key == "evaluate/0/0") return judged(1.0);
                        if (key.starts_with("improve")) return "\\boxed{42}";
                        return judged(0.9);
                      });
  EXPECT_EQ(got.row.value["solution"], "42");
  EXPECT_EQ(got.row.value["version"], 1);
  EXPECT_EQ(got.row.value["samples"][0]["first_verified"], "no");
}

TEST(RowPipeline, AnUnreadJudgementIsNoScoreAndNoReasonToImprove) {
  const Way got = run(pipeline_of({}), input_of({{"problem", "p"}}),
                      [](const std::string& key, const auto&) -> std::string {
                        return key == "generate/0" ? "text" : "Looks good to me!";
                      });
  const Json& row = got.row.value;
  EXPECT_EQ(got.keys.size(), 2u);
  EXPECT_EQ(got.row.state, "ok");
  EXPECT_TRUE(row["quality_score"].is_null());
  EXPECT_TRUE(row["accepted"].is_null());
  EXPECT_EQ(row["scores"]["parsed"], false);
  EXPECT_TRUE(row["scores"]["correctness"].is_null());
  EXPECT_EQ(row["evaluation"], "Looks good to me!");
}

TEST(RowPipeline, NoIterationsMeansNone) {
  settings::ProcessSettings settings;
  settings.improve.max_iterations = 0;
  const Way got =
      run(pipeline_of(settings), input_of(kPipelineRow), [](const std::string& key, const auto&) {
        return key == "generate/0" ? "\\boxed{1}" : judged(0.1);
      });
  EXPECT_EQ(got.keys.size(), 2u);
}

TEST(RowPipeline, AGreedyImproverIsNotAskedTheSameTwice) {
  settings::ProcessSettings settings;
  settings.improve.temperature = 0;
  settings.improve.max_iterations = 5;
  const Way got = run(pipeline_of(settings), input_of({{"problem", "p"}}),
                      [](const std::string& key, const auto&) {
                        return key.starts_with("evaluate") ? judged(0.3) : "same";
                      });
  EXPECT_EQ(got.keys.size(), 4u);
}

TEST(RowPipeline, MostSamplesDecide) {
  settings::ProcessSettings settings;
  settings.generate.n = 5;
  settings.stages = {"generate", "verify", "vote"};
  const std::vector<std::string> answers = {"\\boxed{7}", "\\boxed{42}",
                                            "I tried for long. It did not work.", "\\boxed{42}",
                                            "\\boxed{8}"};
  const Way got =
      run(pipeline_of(settings), input_of(kPipelineRow), [&](const std::string& key, const auto&) {
        return answers.at(static_cast<size_t>(key.back() - '0'));
      });
  const Json& row = got.row.value;
  EXPECT_EQ(row["answer"], "42");
  EXPECT_EQ(row["sample"], 1);
  EXPECT_EQ(row["votes"], Json({{"votes", 2}, {"voters", 4}, {"samples", 5}}));
  EXPECT_DOUBLE_EQ(row["vote_share"], 0.4);
  EXPECT_EQ(row["samples"].size(), 5u);
  EXPECT_EQ(row["samples"][2]["class"], -1);
  EXPECT_EQ(row["samples"][0]["reasoning"], "\\boxed{7}");
  EXPECT_FALSE(row["samples"][1].contains("reasoning"));  // it stands at the top
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

// Readers of outputs and of old ledgers go by these, whichever stages there are.
TEST(RowPipeline, ColumnsOfStagesStandInTheirPlaces) {
  settings::ProcessSettings settings;
  settings.generate.n = 2;
  settings.stages = {"generate", "verify", "vote"};
  const Way got = run(pipeline_of(settings), input_of(kPipelineRow),
                      [](const std::string&, const auto&) { return "\\boxed{42}"; });
  const std::vector<std::string> before = {
      "problem",    "solution",     "reasoning",  "quality_score", "metadata",
      "index",      "source_index", "state",      "finish",        "think",
      "answer",     "gold",         "verified",   "accepted",      "scores",
      "evaluation", "pass_at_k",    "difficulty", "votes",         "vote_share",
      "sample",     "version",      "samples",    "history",       "tokens"};
  std::vector<std::string> with_figures = before;
  with_figures.emplace_back("figures");
  EXPECT_EQ(keys_of(got.row.value), with_figures);
  EXPECT_EQ(keys_of(input_only_value(input_of(kPipelineRow), "bad_input", "why")), before);
  EXPECT_EQ(keys_of(got.row.value["samples"][1]),
            (std::vector<std::string>{"sample", "finish", "answer", "verified", "first_verified",
                                      "quality_score", "class", "versions", "think", "reasoning"}));
  EXPECT_EQ(got.row.value["votes"], Json({{"votes", 2}, {"voters", 2}, {"samples", 2}}));

  settings.stages = {"generate", "verify"};
  const Way without = run(pipeline_of(settings), input_of(kPipelineRow),
                          [](const std::string&, const auto&) { return "\\boxed{42}"; });
  EXPECT_EQ(keys_of(without.row.value), with_figures);
  EXPECT_TRUE(without.row.value["votes"].is_null());
  EXPECT_TRUE(without.row.value["vote_share"].is_null());
  EXPECT_FALSE(without.row.value["samples"][0].contains("class"));
}

TEST(RowPipeline, WhatAStageDeclaresIsColumnAndCondition) {
  const Json row = input_only_value(input_of(kPipelineRow), "bad_input", "why");
  for (const Stage& stage : all_stages()) {
    for (const StageColumn& column : stage.columns)
      EXPECT_TRUE(row.contains(std::string(column.name))) << column.name;
    for (const StageFigure& figure : stage.figures) {
      const std::string_view value = figure.words.empty() ? "1" : figure.words.front();
      const FilterCondition condition(fmt::format("{} == {}", figure.name, value));
      EXPECT_EQ(condition.stage(), stage.name) << figure.name;
      EXPECT_NE(filter_names().find(figure.name), std::string::npos);
    }
  }
}

// Difficulty is that of the samples as they were drawn: an improved one counts by its first text.
TEST(RowPipeline, AProblemHasTheShareOfItsWrongSamplesAsDifficulty) {
  settings::ProcessSettings settings;
  settings.generate.n = 4;
  settings.stages = {"generate", "verify", "improve"};
  const auto write = [](const std::string& key, const auto&) {
    return key == "generate/0" || key.starts_with("improve") ? "\\boxed{42}" : "\\boxed{2}";
  };
  const Json row = run(pipeline_of(settings), input_of(kPipelineRow), write).row.value;
  EXPECT_EQ(row["difficulty"], 0.75);
  EXPECT_EQ(row["pass_at_k"], Json({{"1", 0.25}, {"2", 0.5}, {"4", 1.0}}));
  EXPECT_EQ(row["samples"][1]["verified"], "yes");
  for (const char* const without :
       {R"({"problem": "6 * 7?"})", R"({"problem": "6 * 7?", "answer": ""})"}) {
    const Json unknown = run(pipeline_of(settings), input_of(without), write).row.value;
    EXPECT_TRUE(unknown["difficulty"].is_null());
    EXPECT_TRUE(unknown["pass_at_k"].is_null());
  }
}

TEST(RowPipeline, BehindAVoteAProblemHasNoDifficulty) {
  settings::ProcessSettings settings;
  settings.generate.n = 3;
  settings.stages = {"generate", "vote", "verify"};
  const Json row =
      run(pipeline_of(settings), input_of(kPipelineRow), [](const std::string&, const auto&) {
        return "\\boxed{42}";
      }).row.value;
  EXPECT_EQ(row["verified"], "yes");
  EXPECT_TRUE(row["difficulty"].is_null());
}

TEST(RowPipeline, StagesBehindAVoteLookAtItsWinnerAlone) {
  settings::ProcessSettings settings;
  settings.generate.n = 3;
  settings.stages = {"generate", "vote", "evaluate"};
  const Way got =
      run(pipeline_of(settings), input_of(kPipelineRow), [](const std::string& key, const auto&) {
        return key == "generate/0"           ? "\\boxed{1}"
               : key.starts_with("generate") ? "\\boxed{2}"
                                             : judged(1);
      });
  EXPECT_EQ(got.keys.size(), 4u);
  EXPECT_EQ(got.keys.back(), "evaluate/1/0");
}

TEST(RowPipeline, AFinishedRowHasTheFiguresThatConditionsAskFor) {
  const std::vector<FilterCondition> conditions = {FilterCondition("score >= 0.5"),
                                                   FilterCondition("verified == yes")};
  settings::ProcessSettings settings;
  const auto with_answer = [&](const std::string& answer) {
    return run(pipeline_of(settings), input_of(kPipelineRow),
               [&](const std::string& key, const auto&) {
                 return key.starts_with("evaluate") ? judged(0.9) : "\\boxed{" + answer + "}";
               });
  };
  for (const bool has_filter : {true, false}) {
    if (!has_filter) settings.stages.pop_back();
    Json kept = with_answer("42").row.value;
    apply_conditions(conditions, kept);
    EXPECT_EQ(kept["state"], "ok");
    EXPECT_FALSE(kept.contains("figures"));
    Json rejected = with_answer("41").row.value;
    apply_conditions(conditions, rejected);
    EXPECT_EQ(rejected["state"], "rejected");
    EXPECT_EQ(rejected["rejected_by"], Json({"verified == yes"}));
  }
}

TEST(RowPipeline, ConditionsDoNotDecideWhatIsComputed) {
  const auto content = [](const std::vector<std::string>& stages, const std::string& keep) {
    settings::ProcessSettings settings;
    settings.stages = stages;
    if (!keep.empty()) settings.filter.keep.names = {keep};
    return PipelinePlan(settings, kPrompts).content("model");
  };
  const nlohmann::json plain = content({"generate", "verify"}, "");
  EXPECT_EQ(content({"generate", "verify", "filter"}, ""), plain);
  EXPECT_EQ(content({"generate", "verify", "filter"}, "verified == yes"), plain);
  // Before a stage that changes texts, the filter looks at other texts.
  EXPECT_NE(content({"generate", "verify", "filter", "improve"}, ""),
            content({"generate", "verify", "improve"}, ""));
}

TEST(RowPipeline, ACutTextIsTruncatedAndAThoughtThatNeverEndsToo) {
  settings::ProcessSettings settings;
  settings.stages = {"generate", "verify"};
  const Way cut = run(pipeline_of(settings), input_of(kPipelineRow),
                      [](const auto&, const auto&) { return "CUT so far"; });
  EXPECT_EQ(cut.row.state, "truncated");
  // 42 stands in it, but not as its answer.
  const Way chance = run(pipeline_of(settings), input_of(kPipelineRow),
                         [](const auto&, const auto&) { return "CUT Answer: of all 42 so"; });
  EXPECT_TRUE(chance.row.value["answer"].is_null());
  EXPECT_EQ(chance.row.value["verified"], "unknown");
  const Way marked = run(pipeline_of(settings), input_of(kPipelineRow),
                         [](const auto&, const auto&) { return "CUT \\boxed{42}, since"; });
  EXPECT_EQ(marked.row.value["verified"], "yes");
  EXPECT_EQ(cut.row.value["finish"], "length");
  const Way thinking = run(pipeline_of(settings, true), input_of(kPipelineRow),
                           [](const auto&, const auto&) { return "hm, \\boxed{42}"; });
  EXPECT_EQ(thinking.row.state, "truncated");
  EXPECT_EQ(thinking.row.value["think"], "hm, \\boxed{42}");
  EXPECT_TRUE(thinking.row.value["reasoning"].is_null());
  EXPECT_TRUE(thinking.row.value["answer"].is_null());
  EXPECT_EQ(thinking.row.value["verified"], "unknown");
}

TEST(RowPipeline, ThoughtsAreAFieldOfTheirOwn) {
  settings::ProcessSettings settings;
  settings.stages = {"generate", "verify"};
  const Way got =
      run(pipeline_of(settings, true), input_of(kPipelineRow),
          [](const auto&, const auto&) { return "maybe \\boxed{41}\n</think>\n\\boxed{42}"; });
  EXPECT_EQ(got.row.value["think"], "maybe \\boxed{41}");
  EXPECT_EQ(got.row.value["reasoning"], "\\boxed{42}");
  EXPECT_EQ(got.row.value["verified"], "yes");
}

// No column of content has an error text.
TEST(RowPipeline, WhatTheEngineFailedOnSaysSoInItsStateAlone) {
  settings::ProcessSettings settings;
  const Way got = run(pipeline_of(settings), input_of(kPipelineRow),
                      [](const auto&, const auto&) { return "FAIL the device is full"; });
  EXPECT_EQ(got.row.state, "engine_error");
  for (const char* name : {"solution", "reasoning", "think", "answer", "evaluation"})
    EXPECT_TRUE(got.row.value[name].is_null()) << name;
  EXPECT_EQ(got.row.value["metadata"]["error"], "FAIL the device is full");
  EXPECT_EQ(got.keys.size(), 1u);
}

TEST(RowPipeline, AFailedJudgementLeavesTheRow) {
  const Way got =
      run(pipeline_of({}), input_of(kPipelineRow), [](const std::string& key, const auto&) {
        return key == "generate/0" ? "\\boxed{42}" : "FAIL too long";
      });
  EXPECT_EQ(got.row.state, "ok");
  EXPECT_EQ(got.row.value["scores"]["finish"], "error");
  EXPECT_TRUE(got.row.value["quality_score"].is_null());
  EXPECT_TRUE(got.row.value["evaluation"].is_null());
}

TEST(RowPipeline, ARowWithoutAProblemIsBadInput) {
  const Way got =
      run(pipeline_of({}), input_of({{"text", "?"}}), [](const auto&, const auto&) { return ""; });
  EXPECT_EQ(got.row.state, "bad_input");
  EXPECT_TRUE(got.keys.empty());
  EXPECT_TRUE(got.row.value["problem"].is_null());
  EXPECT_EQ(got.row.value["metadata"]["original_data"]["text"], "?");
}

TEST(RowPipeline, ARowThatCouldNotBeReadKeepsItsTextAndItsError) {
  InputRow input = input_of({{"unreadable_row", "{torn"}});
  input.unreadable = "a.jsonl:14: not valid JSON";
  const Way got = run(pipeline_of({}), input, [](const auto&, const auto&) { return ""; });
  EXPECT_EQ(got.row.state, "bad_input");
  EXPECT_EQ(got.row.value["metadata"]["original_data"]["unreadable_row"], "{torn");
  EXPECT_EQ(got.row.value["metadata"]["error"], "a.jsonl:14: not valid JSON");
}

TEST(RowPipeline, OfSeveralReferencesOneIsEnough) {
  settings::ProcessSettings settings;
  settings.stages = {"generate", "verify"};
  const auto right = [](const auto&, const auto&) { return "It is \\boxed{42}"; };
  const auto with = [](const nlohmann::ordered_json& answer) {
    return input_of({{"problem", "p"}, {"answer", answer}});
  };
  const Way listed =
      run(pipeline_of(settings), with(nlohmann::ordered_json::array({"41", 42})), right);
  EXPECT_EQ(listed.row.value["verified"], "yes");
  EXPECT_EQ(listed.row.value["gold"], nlohmann::ordered_json::array({"41", "42"}));
  const Way none = run(pipeline_of(settings), with({{"a", 1}}), right);
  EXPECT_EQ(none.row.state, "ok");
  EXPECT_TRUE(none.row.value["gold"].is_null());
  EXPECT_TRUE(none.row.value["verified"].is_null());
}

TEST(RowPipeline, WithoutGenerateTheGivenSolutionIsJudged) {
  settings::ProcessSettings settings;
  settings.stages = {"verify", "evaluate"};
  const Way got = run(pipeline_of(settings), input_of(kPipelineRow),
                      [](const auto&, const auto&) { return judged(0.7); });
  EXPECT_EQ(got.keys, (std::vector<std::string>{"evaluate/0/0"}));
  EXPECT_EQ(got.row.value["reasoning"], "It is \\boxed{42}");
  EXPECT_EQ(got.row.value["quality_score"], 0.7);
}

TEST(RowPipeline, AnAnswerColumnBeatsTheSolution) {
  settings::ProcessSettings settings;
  settings.stages = {"generate", "verify"};
  Json row = kPipelineRow;
  row["answer"] = "43";
  const Way got = run(pipeline_of(settings), input_of(row),
                      [](const auto&, const auto&) { return "\\boxed{43}"; });
  EXPECT_EQ(got.row.value["gold"], "43");
  EXPECT_EQ(got.row.value["verified"], "yes");
}

// The next step of a row depends only on the kept texts, not on their order.
TEST(RowPipeline, TheOrderOfKeptTextsIsNothing) {
  settings::ProcessSettings settings;
  settings.generate.n = 3;
  const RowPipeline pipeline = pipeline_of(settings);
  std::vector<KeptStep> kept;
  for (const char* key : {"generate/2", "evaluate/0/0", "generate/0", "evaluate/2/0"})
    kept.push_back(
        {.key = key,
         .result = {.text = std::string(key).starts_with("e") ? judged(0.9) : "\\boxed{1}"}});
  const NextSteps forward = pipeline.next(input_of(kPipelineRow), kept);
  std::reverse(kept.begin(), kept.end());
  const NextSteps backward = pipeline.next(input_of(kPipelineRow), kept);
  ASSERT_EQ(forward.steps.size(), backward.steps.size());
  for (size_t at = 0; at < forward.steps.size(); ++at)
    EXPECT_EQ(forward.steps[at].key, backward.steps[at].key);
}

}  // namespace
}  // namespace convoy::process
