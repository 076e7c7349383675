// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/bench_train.h"

#include <gtest/gtest.h>

#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::recipes {
namespace {

using Json = nlohmann::ordered_json;

Json bench(const settings::BenchTrainFlags& flags) {
  settings::BenchFlags common;
  common.geometry = "tiny";
  return bench_train(common, flags, {}, Log(LogLevel::Quiet));
}

settings::BenchTrainFlags short_rows(const std::string& mode) {
  settings::BenchTrainFlags flags;
  flags.mode = mode;
  flags.seq = 24;
  flags.steps = 2;
  return flags;
}

TEST(BenchTrain, EachModeTrainsSomethingElseAndRecomputationChangesNoBitOfIt) {
  std::vector<Json> losses;
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
    for (const Json& loss : losses) EXPECT_NE(plain["loss"], loss) << mode;
    losses.push_back(plain["loss"]);
  }
}

TEST(BenchTrain, GlobalBatchIsMadeUpByAccumulation) {
  settings::BenchTrainFlags flags = short_rows("full");
  const Json whole = bench(flags);
  flags.batch = 1;
  flags.global_batch = 2;
  const Json cut = bench(flags);
  EXPECT_EQ(cut["grad_accum"], 2);
  EXPECT_EQ(cut["global_batch"], whole["global_batch"]);
  EXPECT_NEAR(cut["loss"].get<double>(), whole["loss"].get<double>(), 2e-3);
  flags.batch = 2;
  flags.global_batch = 3;
  EXPECT_THROW(bench(flags), ConfigError);
}

// The file has the keys that scripts for tprimat's files read.
TEST(BenchTrain, WritesTheFileOfTheField) {
  const testing::TemporaryFolder folder;
  settings::BenchTrainFlags flags = short_rows("full");
  flags.output_dir = folder.path().string();
  const Json printed = bench(flags);
  const Json file = Json::parse(read_file(folder.path() / "train_convoy_tiny.json"));
  EXPECT_EQ(file["training_config"]["sequence_length"], 24);
  EXPECT_EQ(file["training_config"]["global_batch_size"], 2);
  EXPECT_EQ(file["parallelism_config"]["data_parallel_size"], 1);
  EXPECT_EQ(file["step_times"].size(), 3) << "the first step, which no average has, and two more";
  EXPECT_EQ(file["loss_values"].size(), 3);
  const Json& metrics = file["performance_metrics"];
  const double mean =
      (file["step_times"][1].get<double>() + file["step_times"][2].get<double>()) / 2;
  EXPECT_NEAR(metrics["avg_step_time_seconds"].get<double>(), mean, 2e-5);
  EXPECT_NEAR(metrics["tokens_per_second"].get<double>() * mean, 48, 0.5);
  EXPECT_GT(file["memory_metrics"]["peak_memory_allocated_gb"].get<double>(), 0.02);
  EXPECT_EQ(file["model_info"]["total_params"], file["model_info"]["trainable_params"]);
}

TEST(BenchTrain, RowsMayBeAsLongAsTheGeometryHasPositionsAndNoLonger) {
  settings::BenchTrainFlags flags = short_rows("lora");
  flags.batch = 1;
  flags.steps = 1;
  flags.recompute = true;
  flags.seq = 4097;
  EXPECT_EQ(bench(flags)["seq"], 4097);
  flags.seq = 32769;
  try {
    bench(flags);
    ADD_FAILURE() << "a row without positions";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.location().key, "seq");
    EXPECT_NE(error.sentence().find("at most 32768 tokens"), std::string::npos) << error.sentence();
  }
}

}  // namespace
}  // namespace convoy::recipes
