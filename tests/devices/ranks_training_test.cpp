// SPDX-License-Identifier: Apache-2.0
//
// Trains with ranks that each have a simulated device and use the stand-in for NCCL. The results
// have the bytes of the same ranks on CPUs with the same table of ops.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "convoy/apps/recipes/model_test.h"
#include "convoy/apps/recipes/training/fine_tune.h"
#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/model/kernels/registry/op_table.h"
#include "files/temporary_folder.h"
#include "ranks/ranks.h"
#include "simulated_device/fake_nccl_hooks.h"
#include "simulated_device/simulated_device.h"

namespace convoy {
namespace {

RANK_BODY(TrainsOnItsDevice) {
  const std::string devices = std::getenv("DEVICES");
  std::optional<kernels::CpuTableOverride> same_ops;
  if (devices == "sim") {
    simulated::install(2);
    simulated::load_fake_nccl();
  } else {
    same_ops.emplace(kernels::aten_op_table());
  }
  const std::filesystem::path run = std::getenv("RUN");
  const std::atomic<bool> stop = false;
  EXPECT_EQ(
      recipes::fine_tune({.run_folder = run, .settings = {run / "config.yaml"}, .devices = devices},
                         stop, Log(LogLevel::Quiet)),
      ExitCode::Done);
  EXPECT_TRUE(devices != "sim" || simulated::take_findings().empty());
}

class RanksTraining : public ::testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  RanksTraining() { testing::make_model(folder_ / "model"); }

  nlohmann::json config() const {
    const auto [strategy, mode] = GetParam();
    return {{"seed", 3},
            {"model",
             {{"name", (folder_ / "model").string()}, {"max_seq_len", 128}, {"dtype", "fp32"}}},
            {"data",
             {{"train_path", (testing::golden_folder() / "train/chats.jsonl").string()},
              {"cache_dir", "none"},
              {"split", {{"train_ratio", 0.8}, {"val_ratio", 0.2}, {"test_ratio", 0}}}}},
            {"tuning", {{"mode", mode}, {"lora", {{"r", 2}, {"alpha", 4}}}}},
            {"parallel", {{"strategy", strategy}}},
            {"train",
             {{"steps", 3},
              {"batch_size", 2},
              {"grad_accum", 2},
              {"learning_rate", 0.01},
              {"eval_strategy", "epoch"},
              {"save_strategy", "steps"},
              {"save_steps", 1},
              {"async_save", true}}},
            {"logging", {{"backend", "none"}}}};
  }

  void train(const std::string& devices) {
    const std::filesystem::path run = folder_ / devices;
    const auto held = telemetry::RunFolder::create(run, devices);
    write_file_atomic(held.config_path(), config().dump());  // JSON is also YAML
    testing::expect_all_well(testing::start_ranks(
        2, "TrainsOnItsDevice", {.environment = {{"DEVICES", devices}, {"RUN", run.string()}}}));
  }

  convoy::testing::TemporaryFolder folder_;
};

TEST_P(RanksTraining, HasTheFilesOfRanksOnCpus) {
  train("sim");
  train("cpu");
  int compared = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "cpu")) {
    if (entry.path().extension() != ".safetensors") continue;
    const auto file = std::filesystem::relative(entry.path(), folder_ / "cpu");
    EXPECT_TRUE(read_file(folder_ / "sim" / file) == read_file(entry.path())) << file;
    ++compared;
  }
  EXPECT_GE(compared, 3);
}
INSTANTIATE_TEST_SUITE_P(All, RanksTraining,
                         ::testing::Values(std::pair{"ddp", "lora"}, std::pair{"zero1", "full"},
                                           std::pair{"zero3", "full"}, std::pair{"zero3", "qlora"}),
                         [](const auto& tested) {
                           return std::string(tested.param.first) + "_" + tested.param.second;
                         });

}  // namespace
}  // namespace convoy
