// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/bench_generate.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::recipes {
namespace {

TEST(BenchGenerate, HoldsLinearMapsAsAsked) {
  settings::BenchFlags common;
  common.geometry = "tiny";
  settings::BenchGenerateFlags flags;
  flags.batches = {1};
  flags.prompts = 1;
  flags.prompt_tokens = 4;
  flags.new_tokens = 4;
  flags.repeats = 1;
  const auto weights = [&] {
    return bench_generate(common, flags, "cpu").at("weights").get<std::string>();
  };
  EXPECT_EQ(weights(), "none");
  flags.activations = "int8";
  EXPECT_THROW(weights(), ConfigError) << "no codes to multiply with";
  flags.weights = "int4";
  EXPECT_EQ(weights(), "int4");
  flags.weights = flags.activations = "model";
  flags.quantization = "nf4";
  flags.double_quant = true;
  EXPECT_TRUE(weights().starts_with("nf4")) << weights();
  flags.weights = "int8";
  EXPECT_THROW(weights(), ConfigError);
  flags.quantization = "int8";
  flags.weights = "model";
  EXPECT_THROW(weights(), ConfigError) << "no blocks, no scales of blocks";
  flags.double_quant = false;
  EXPECT_TRUE(weights().starts_with("int8")) << weights();
}

}  // namespace
}  // namespace convoy::recipes
