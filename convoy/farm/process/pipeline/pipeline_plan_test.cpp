// SPDX-License-Identifier: Apache-2.0
//
// Plans of stages and prompts: which are refused, and what identifies the results of one.
#include "convoy/farm/process/pipeline/pipeline_plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "convoy/core/base/error.h"

namespace convoy::process {
namespace {

const PromptTexts kPlanPrompts = {{"generate", "Q: {{ problem }}"},
                                  {"evaluate", "Judge {{ reasoning }} ({{ solution }})"},
                                  {"improve", "Improve {{ current_solution }} by {{ feedback }}"}};

TEST(PipelinePlan, RefusesStagesThatCanNotBe) {
  for (const std::vector<std::string>& stages : {std::vector<std::string>{},
                                                 {"generate", "generate"},
                                                 {"verify", "generate"},
                                                 {"generate", "improve"},
                                                 {"generate", "improve", "verify"},
                                                 {"genrate"}}) {
    settings::ProcessSettings settings;
    settings.stages = stages;
    EXPECT_THROW(PipelinePlan(settings, kPlanPrompts), ConfigError);
  }
}

TEST(PipelinePlan, RefusesAFilterOfFiguresThatNoStageBeforeItMakes) {
  const auto plan = [](const std::vector<std::string>& stages, const std::string& keep) {
    settings::ProcessSettings settings;
    settings.stages = stages;
    settings.filter.keep.names = {keep};
    return PipelinePlan(settings, kPlanPrompts);
  };
  EXPECT_THROW(plan({"generate", "filter"}, "score > 0.5"), ConfigError);
  EXPECT_THROW(plan({"generate", "filter", "verify"}, "verified == yes"), ConfigError);
  EXPECT_THROW(plan({"generate", "verify", "filter"}, "votes > 1"), ConfigError);
  EXPECT_NO_THROW(plan({"generate", "verify", "filter"}, "verified == yes"));
  EXPECT_NO_THROW(plan({"generate", "filter"}, "tokens > 1"));
}

TEST(PipelinePlan, RefusesAPromptThatSaysNothing) {
  PromptTexts prompts = kPlanPrompts;
  prompts["generate"] = " \n";
  EXPECT_THROW(PipelinePlan({}, prompts), ConfigError);
}

TEST(PipelinePlan, ContentIsWhatDecidesRowsAndNothingElse) {
  const auto content = [](const std::function<void(settings::ProcessSettings&)>& change,
                          PromptTexts prompts = kPlanPrompts, const char* model = "m") {
    settings::ProcessSettings settings;
    change(settings);
    return PipelinePlan(settings, prompts).content(model).dump();
  };
  const std::string base = content([](auto&) {});
  EXPECT_EQ(base, content([](auto& settings) {
              settings.workers.world_size = 7;
              settings.output.path = "x.csv";
              settings.data.num_examples = 3;
              settings.workers.batch_size = 9;
            }));
  EXPECT_NE(base, content([](auto& settings) { settings.seed = 1; }));
  EXPECT_NE(base, content([](auto& settings) { settings.generate.n = 2; }));
  EXPECT_NE(base, content([](auto& settings) {
              settings.evaluate.weights = {{"correctness", 1}};
            }));
  EXPECT_NE(base, content([](auto& settings) {
              settings.engine.weights = "int4";
              settings.engine.activations = "int8";
            }));
  EXPECT_EQ(base.find("activations"), std::string::npos) << "runs from before the setting continue";
  EXPECT_NE(base, content([](auto&) {}, kPlanPrompts, "other"));
  const auto with_schema = [](const char* schema) {
    settings::ProcessSettings settings;
    settings.generate.schema = "of-no-meaning.json";
    return PipelinePlan(settings, kPlanPrompts, {{"generate", schema}}).content("m").dump();
  };
  EXPECT_EQ(nlohmann::json::parse(base)["generate"].count("schema"), 0u)
      << "runs from before the setting continue";
  EXPECT_NE(with_schema("{}"), with_schema(R"({"type":"object"})"));
  EXPECT_EQ(with_schema("{}").find("of-no-meaning"), std::string::npos);
  PromptTexts changed = kPlanPrompts;
  changed["improve"] += "!";
  EXPECT_NE(base, content([](auto&) {}, changed));
}

}  // namespace
}  // namespace convoy::process
