// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/bench_train.h"

#include <gtest/gtest.h>

#include "convoy/base/error.h"

namespace convoy::recipes {
namespace {

using Json = nlohmann::ordered_json;

Json bench(const settings::BenchTrainFlags& flags) {
  settings::BenchFlags common;
  common.geometry = "tiny";
  return bench_train(common, flags, "cpu");
}

settings::BenchTrainFlags short_rows(const std::string& mode) {
  settings::BenchTrainFlags flags;
  flags.mode = mode;
  flags.seq = 24;
  flags.steps = 2;
  return flags;
}

TEST(BenchTrain, RecomputationChangesNoBitOfTheLoss) {
  for (const char* mode : {"lora", "dora", "full"}) {
    settings::BenchTrainFlags flags = short_rows(mode);
    const Json plain = bench(flags);
    flags.recompute = true;
    const Json recomputed = bench(flags);
    EXPECT_EQ(recomputed["loss"], plain["loss"]) << mode;
    EXPECT_EQ(recomputed["recompute"], true);
    EXPECT_EQ(recomputed["flops_per_token"], plain["flops_per_token"])
        << "work done twice is not counted";
    EXPECT_GT(plain["tokens_per_s"].get<double>(), 0);
  }
}

TEST(BenchTrain, EachModeTrainsSomethingElse) {
  const double lora = bench(short_rows("lora"))["loss"];
  const double dora = bench(short_rows("dora"))["loss"];
  const double full = bench(short_rows("full"))["loss"];
  EXPECT_NE(lora, dora);
  EXPECT_NE(lora, full);
}

TEST(BenchTrain, RowsMayBeAsLongAsTheGeometryHasPositionsAndNoLonger) {
  settings::BenchTrainFlags flags = short_rows("lora");
  flags.batch = 1;
  flags.steps = 1;
  flags.recompute = true;
  flags.seq = 8192;
  EXPECT_EQ(bench(flags)["seq"], 8192);
  flags.seq = 32769;
  try {
    bench(flags);
    ADD_FAILURE() << "a row without positions";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.place().key, "seq");
    EXPECT_NE(error.sentence().find("at most 32768 tokens"), std::string::npos) << error.sentence();
  }
}

}  // namespace
}  // namespace convoy::recipes
