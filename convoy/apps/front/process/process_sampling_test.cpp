// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_sampling.h"

#include <gtest/gtest.h>

namespace convoy::apps {
namespace {

settings::ModelSampling model_sampling() {
  return settings::read_model_sampling(
      {{"temperature", 0.7}, {"top_p", 0.8}, {"top_k", 20}, {"max_new_tokens", 2048}},
      "m/generation_config.json");
}

TEST(ProcessSampling, TheModelsFileCountsWhereNoSourceOfTheConfigurationDoes) {
  ProcessConfig config;
  settings::ProcessFlagValues flags;
  flags.settings.generate.max_tokens = 64;
  flags.names = {"max_tokens"};
  config.resolved = settings::resolve_process(
      config.settings, {.overrides = {"generate.top_p=0.9", "improve.temperature=0.1"}}, flags);
  const std::string line = settle_process_sampling(config, model_sampling());
  const settings::DrawSettings& draw = config.settings.generate;
  EXPECT_EQ(draw.temperature, 0.7);
  EXPECT_EQ(draw.top_p, 0.9);  // given, though it equals the default
  EXPECT_EQ(draw.top_k, 20);
  EXPECT_EQ(draw.max_tokens, 64);
  EXPECT_EQ(config.settings.improve.temperature, 0.1);
  EXPECT_EQ(config.settings.improve.top_p, 0.8);
  EXPECT_EQ(config.settings.evaluate.temperature, 0.3);  // the judge has its own temperature
  EXPECT_EQ(line,
            "sampling: top_p 0.9, max_new_tokens 64 as given; temperature 0.7, top_k 20 by "
            "m/generation_config.json");
  // The run's record shows the origin of the value, and the workers read the value.
  EXPECT_EQ(config.resolved.value("generate.top_k").origin, "decided: m/generation_config.json");
  EXPECT_NE(config.resolved.yaml().find("temperature: 0.7"), std::string::npos);
}

TEST(ProcessSampling, AFlagThatGivesTheDefaultBeatsTheModelsFile) {
  ProcessConfig config;
  settings::ProcessFlagValues flags;
  flags.names = {"temperature"};
  config.resolved = settings::resolve_process(config.settings, {}, flags);
  EXPECT_EQ(config.resolved.value("generate.temperature").origin, "decided: by a flag");
  EXPECT_EQ(config.resolved.value("evaluate.temperature").origin, "default");
  settle_process_sampling(config, model_sampling());
  EXPECT_EQ(config.settings.generate.temperature, 0.2);
  EXPECT_EQ(config.settings.generate.top_p, 0.8);
}

TEST(ProcessSampling, WithServersTheLineSaysThatTheValuesAreSent) {
  ProcessConfig config;
  config.resolved =
      settings::resolve_process(config.settings, {.overrides = {"remote.engine=http://h:1/v1"}});
  const std::string silent = settle_process_sampling(config, {});
  EXPECT_NE(silent.find("max_new_tokens 4096 by default; these are sent, no default of the servers"
                        ": --model DIR"),
            std::string::npos)
      << silent;
  const std::string told = settle_process_sampling(config, model_sampling());
  EXPECT_NE(told.find("by m/generation_config.json; these are sent"), std::string::npos) << told;
  EXPECT_EQ(told.find("--model DIR"), std::string::npos) << told;
}

TEST(ProcessSampling, ASilentModelLeavesTheDefaults) {
  ProcessConfig config;
  config.resolved = settings::resolve_process(config.settings, {});
  EXPECT_EQ(settle_process_sampling(config, {}),
            "sampling: temperature 0.2, top_p 0.9, max_new_tokens 4096 by default");
  EXPECT_EQ(config.settings.generate.temperature, 0.2);
  EXPECT_EQ(config.settings.improve.top_p, 0.9);
}

}  // namespace
}  // namespace convoy::apps
