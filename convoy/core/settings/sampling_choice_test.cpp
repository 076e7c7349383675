// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/sampling_choice.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::settings {
namespace {

using Json = nlohmann::ordered_json;

SamplingSources sources_of(const Json& config, SamplingUse use = SamplingUse::Write) {
  return {read_model_sampling(config, "generation_config.json"), usual_sampling(use)};
}

// {temperature, top_p, top_k, min_p, repetition_penalty, max_new_tokens}
std::vector<double> values_of(const SamplingFlags& given, const SamplingSources& sources) {
  const SamplingFlags settled = settle_sampling(given, sources);
  return {*settled.temperature.value,
          *settled.top_p.value,
          static_cast<double>(*settled.top_k.value),
          *settled.min_p.value,
          *settled.repetition_penalty.value,
          static_cast<double>(*settled.max_new_tokens.value)};
}
using Values = std::vector<double>;

TEST(SamplingChoice, ASilentModelLeavesTheCommandsValues) {
  const Json silent = {{"bos_token_id", 0}, {"eos_token_id", {2, 0}}, {"pad_token_id", nullptr}};
  EXPECT_EQ(values_of({}, sources_of(silent)), (Values{0.2, 0.9, 0, 0, 1, 200}));
  EXPECT_EQ(values_of({}, sources_of(silent, SamplingUse::Compare)),
            (Values{0, 0.9, 0, 0, 1, 200}));
  EXPECT_EQ(values_of({}, sources_of(silent, SamplingUse::Serve)), (Values{1, 1, 0, 0, 1, 0}));
  EXPECT_EQ(sampling_line({}, sources_of(silent)),
            "sampling: temperature 0.2, top_p 0.9, max_new_tokens 200 by default");
  EXPECT_EQ(sampling_line({}, {.usual = usual_sampling(SamplingUse::Serve)}),
            "sampling: temperature 1 by default");
}

// Qwen2.5's file.
TEST(SamplingChoice, TheModelsFileCountsInEveryUseAndFlagsWin) {
  const Json file = {{"do_sample", true},  {"repetition_penalty", 1.05},
                     {"temperature", 0.7}, {"top_p", 0.8},
                     {"top_k", 20},        {"max_new_tokens", 2048}};
  for (const SamplingUse use : {SamplingUse::Write, SamplingUse::Compare, SamplingUse::Serve})
    EXPECT_EQ(values_of({}, sources_of(file, use)), (Values{0.7, 0.8, 20, 0, 1.05, 2048}));
  SamplingFlags given;
  given.top_p = 0.9;  // the value that would be the default
  given.max_new_tokens = 64;
  const SamplingSources sources = sources_of(file);
  EXPECT_EQ(values_of(given, sources), (Values{0.7, 0.9, 20, 0, 1.05, 64}));
  EXPECT_EQ(sampling_line(given, sources),
            "sampling: top_p 0.9, max_new_tokens 64 as given; temperature 0.7, top_k 20, "
            "repetition_penalty 1.05 by generation_config.json");
  given.greedy = true;
  EXPECT_EQ(values_of(given, sources)[0], 0);
  EXPECT_EQ(sampling_line(given, sources),
            "sampling: greedy, max_new_tokens 64 as given; repetition_penalty 1.05 by "
            "generation_config.json");
}

TEST(SamplingChoice, AFileThatDrawsSaysWhatItLeavesOut) {
  EXPECT_EQ(values_of({}, sources_of({{"do_sample", true}})), (Values{1, 1, 0, 0, 1, 200}));
  EXPECT_EQ(values_of({}, sources_of({{"temperature", 0.6}})), (Values{0.6, 1, 0, 0, 1, 200}));
  EXPECT_EQ(values_of({}, sources_of({{"min_p", 0.05}, {"top_k", -1}})),
            (Values{1, 1, 0, 0.05, 1, 200}));
  EXPECT_EQ(values_of({}, sources_of({{"repetition_penalty", 1.1}})),
            (Values{0.2, 0.9, 0, 0, 1.1, 200}));
}

TEST(SamplingChoice, DoSampleFalseIsGreedy) {
  const SamplingSources sources = sources_of({{"do_sample", false}, {"max_new_tokens", 2048}});
  EXPECT_EQ(values_of({}, sources), (Values{0, 0.9, 0, 0, 1, 2048}));
  EXPECT_EQ(sampling_line({}, sources),
            "sampling: greedy, max_new_tokens 2048 by generation_config.json");
  SamplingFlags warm;
  warm.temperature = 0.5;
  EXPECT_EQ(values_of(warm, sources)[0], 0.5);
}

TEST(SamplingChoice, KeysThatHaveNoEffectAreNamed) {
  const SamplingSources sources = sources_of(
      {{"num_beams", 4}, {"no_repeat_ngram_size", 0}, {"length_penalty", 1.0}, {"typical_p", 0.9}});
  EXPECT_TRUE(sampling_line({}, sources)
                  .ends_with("; num_beams, typical_p of generation_config.json have no effect"))
      << sampling_line({}, sources);
}

TEST(SamplingChoice, BadValuesNameFileAndKey) {
  for (const Json& config :
       {Json{{"temperature", "0.7"}}, Json{{"top_p", 1.5}}, Json{{"top_k", 2.5}},
        Json{{"min_p", -1}}, Json{{"repetition_penalty", 0}}, Json{{"max_new_tokens", 0}},
        Json{{"do_sample", 1}}}) {
    const std::string key = config.begin().key();
    try {
      read_model_sampling(config, "m/generation_config.json");
      ADD_FAILURE() << config.dump();
    } catch (const DataError& error) {
      EXPECT_EQ(error.location().file, "m/generation_config.json");
      EXPECT_EQ(error.location().key, key);
    }
  }
}

TEST(SamplingChoice, GreedyAndATemperatureExcludeEachOther) {
  SamplingFlags given;
  given.greedy = true;
  given.temperature = 0.5;
  EXPECT_THROW(settle_sampling(given, sources_of(Json::object())), ConfigError);
}

}  // namespace
}  // namespace convoy::settings
