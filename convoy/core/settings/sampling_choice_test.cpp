// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/sampling_choice.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/core/settings/process_settings.h"

namespace convoy::settings {
namespace {

using Json = nlohmann::ordered_json;

SamplingSources sources_of(const Json& config) {
  return {.model = read_model_sampling(config, "generation_config.json")};
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

TEST(SamplingChoice, ASilentModelLeavesTheUsualValues) {
  const Json silent = {{"bos_token_id", 0}, {"eos_token_id", {2, 0}}, {"pad_token_id", nullptr}};
  EXPECT_EQ(values_of({}, sources_of(silent)), (Values{0.2, 0.9, 0, 0, 1, 4096}));
  EXPECT_EQ(sampling_line({}, sources_of(silent)),
            "sampling: temperature 0.2, top_p 0.9, max_new_tokens 4096 by default");
}

// Qwen2.5's file.
TEST(SamplingChoice, TheModelsFileCountsAndFlagsWin) {
  const Json file = {{"do_sample", true},  {"repetition_penalty", 1.05},
                     {"temperature", 0.7}, {"top_p", 0.8},
                     {"top_k", 20},        {"max_new_tokens", 2048}};
  EXPECT_EQ(values_of({}, sources_of(file)), (Values{0.7, 0.8, 20, 0, 1.05, 2048}));
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
  EXPECT_EQ(values_of({}, sources_of({{"do_sample", true}})), (Values{1, 1, 0, 0, 1, 4096}));
  EXPECT_EQ(values_of({}, sources_of({{"temperature", 0.6}})), (Values{0.6, 1, 0, 0, 1, 4096}));
  EXPECT_EQ(values_of({}, sources_of({{"min_p", 0.05}, {"top_k", -1}})),
            (Values{1, 1, 0, 0.05, 1, 4096}));
  EXPECT_EQ(values_of({}, sources_of({{"repetition_penalty", 1.1}})),
            (Values{0.2, 0.9, 0, 0, 1.1, 4096}));
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

TEST(SamplingChoice, ATotalLengthHasNoEffectAndIsNamed) {
  const auto ends_so = [](const Json& config, const char* end) {
    const std::string line = sampling_line({}, sources_of(config));
    return line.ends_with(end);
  };
  constexpr const char* kNamed = "; max_length of generation_config.json has no effect";
  EXPECT_TRUE(ends_so({{"max_length", 4096}}, kNamed));
  EXPECT_FALSE(ends_so({{"max_length", 20}}, kNamed)) << "the value of transformers";
  EXPECT_FALSE(ends_so({{"max_length", 4096}, {"max_new_tokens", 30}}, kNamed));
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

TEST(SamplingChoice, AServersFlagsComeBetweenRequestAndModel) {
  SamplingValues of_server;
  of_server.temperature = 0.5;
  of_server.max_new_tokens = 64;
  const SamplingSources sources = sources_of_requests(
      of_server, sources_of({{"do_sample", true}, {"temperature", 0.7}, {"top_p", 0.8}}));
  EXPECT_EQ(values_of({}, sources), (Values{0.5, 0.8, 0, 0, 1, 64}));
  SamplingFlags request;
  request.temperature = 1.5;
  EXPECT_EQ(values_of(request, sources), (Values{1.5, 0.8, 0, 0, 1, 64}));
}

// `convoy process` keeps its values as plain numbers.
TEST(SamplingChoice, ProcessHasTheUsualValues) {
  const SamplingValues usual = usual_sampling();
  const DrawSettings draw;
  EXPECT_EQ(usual.temperature, draw.temperature);
  EXPECT_EQ(usual.top_p, draw.top_p);
  EXPECT_EQ(usual.top_k, draw.top_k);
  EXPECT_EQ(usual.min_p, draw.min_p);
  EXPECT_EQ(usual.repetition_penalty, draw.repetition_penalty);
  EXPECT_EQ(usual.max_new_tokens, draw.max_tokens);
  EXPECT_EQ(usual.temperature, ImproveSettings().temperature);
  EXPECT_EQ(usual.top_p, ImproveSettings().top_p);
}

TEST(SamplingChoice, GreedyAndATemperatureExcludeEachOther) {
  SamplingFlags given;
  given.greedy = true;
  given.temperature = 0.5;
  EXPECT_THROW(settle_sampling(given, sources_of(Json::object())), ConfigError);
}

}  // namespace
}  // namespace convoy::settings
