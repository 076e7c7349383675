// SPDX-License-Identifier: Apache-2.0
//
// Trains activity recognition on the simulated device, alone and with replicas as threads, and a
// language model with replicas. The results have the bytes of the CPU's results with the same table
// of ops.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convoy/apps/recipes/model_test.h"
#include "convoy/apps/recipes/training/fine_tune.h"
#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/model/kernels/registry/op_table.h"
#include "files/temporary_folder.h"
#include "simulated_device/simulated_device.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;
using testing::golden_folder;

nlohmann::json activities() {
  const fs::path sample = fs::path(std::getenv("CONVOY_SOURCE_DIR")) / "examples/har/sample";
  return {{"task", "classify"},
          {"seed", 3},
          {"classify",
           {{"data_dir", sample.string()},
            {"pooling", "joint"},
            {"widths", {8, 8}},
            {"kernel_sizes", {5, 3}},
            {"hidden_dims", {16}},
            {"dropout", 0.1},
            {"num_workers", 1}}},
          {"train",
           {{"steps", 4},
            {"batch_size", 8},
            {"grad_accum", 2},
            {"bf16", false},
            {"learning_rate", 0.01},
            {"max_grad_norm", 0.1},
            {"eval_strategy", "steps"},
            {"eval_steps", 2},
            {"load_best_model_at_end", false},
            {"save_strategy", "steps"},
            {"save_steps", 2},
            {"async_save", true}}},
          {"logging", {{"backend", "none"}}}};
}

nlohmann::json conversations(const fs::path& model) {
  return {{"seed", 3},
          {"model", {{"name", model.string()}, {"max_seq_len", 128}, {"dtype", "fp32"}}},
          {"data",
           {{"train_path", (golden_folder() / "train/chats.jsonl").string()},
            {"cache_dir", "none"},
            {"split", {{"train_ratio", 0.8}, {"val_ratio", 0.2}, {"test_ratio", 0}}}}},
          {"tuning", {{"mode", "lora"}, {"lora", {{"r", 2}, {"alpha", 4}, {"dropout", 0.1}}}}},
          {"train",
           {{"steps", 3},
            {"batch_size", 2},
            {"grad_accum", 2},
            {"learning_rate", 0.01},
            {"eval_strategy", "no"},
            {"save_strategy", "steps"},
            {"save_steps", 3}}},
          {"logging", {{"backend", "none"}}}};
}

class Trained : public ::testing::Test {
 protected:
  Trained() { simulated::install(2); }
  void TearDown() override { EXPECT_TRUE(simulated::take_findings().empty()); }

  void train(const std::string& devices, const std::string& run, const nlohmann::json& config) {
    const auto held = telemetry::RunFolder::create(folder_ / run, run);
    write_file_atomic(held.config_path(), config.dump());  // JSON is also YAML
    const std::atomic<bool> stop = false;
    EXPECT_EQ(
        recipes::fine_tune(
            {.run_folder = folder_ / run, .settings = {held.config_path()}, .devices = devices},
            stop, Log(LogLevel::Quiet)),
        ExitCode::Done);
  }

  // Trains on the device and on the CPU, and compares the files `files` of both runs.
  void expect_same(const nlohmann::json& config, const std::vector<std::string>& files) {
    train("sim", "device", config);
    {
      const kernels::CpuTableOverride same_ops(kernels::aten_op_table());
      train("cpu", "host", config);
    }
    for (const std::string& file : files)
      EXPECT_TRUE(bytes("device/" + file) == bytes("host/" + file)) << file;
  }

  std::string bytes(const std::string& file) const { return read_file(folder_ / file); }

  convoy::testing::TemporaryFolder folder_;
};

const std::vector<std::string> kActivityFiles = {"model/model.safetensors",
                                                 "checkpoints/step-00000004/model.safetensors",
                                                 "checkpoints/step-00000004/buffers.safetensors",
                                                 "checkpoints/step-00000004/optimizer.safetensors"};

TEST_F(Trained, ActivitiesAreThoseOfTheCpu) { expect_same(activities(), kActivityFiles); }

TEST_F(Trained, ActivitiesGoOnWhereTheyWereStopped) {
  train("sim", "unbroken", activities());
  fs::create_directories(folder_ / "again/checkpoints");
  fs::copy(folder_ / "unbroken/checkpoints/step-00000002",
           folder_ / "again/checkpoints/step-00000002", fs::copy_options::recursive);
  train("sim", "again", activities());
  for (const std::string& file : kActivityFiles)
    EXPECT_TRUE(bytes("again/" + file) == bytes("unbroken/" + file)) << file;
}

TEST_F(Trained, ActivitiesOfReplicasOnTwoDevicesAreThoseOfTheCpu) {
  nlohmann::json config = activities();
  config["parallel"] = {{"strategy", "dp"}, {"replicas", 2}};
  const int64_t before = simulated::memory(1).allocations;
  expect_same(config, kActivityFiles);
  EXPECT_GT(simulated::memory(1).allocations, before) << "the second device took no part";
}

// There is one replica for each device.
TEST_F(Trained, ReplicasAreAsManyAsDevices) {
  nlohmann::json config = activities();
  config["parallel"] = {{"strategy", "dp"}, {"replicas", 2}};
  train("sim", "two", config);
  config["parallel"].erase("replicas");
  train("sim", "all", config);
  for (const std::string& file : kActivityFiles)
    EXPECT_TRUE(bytes("all/" + file) == bytes("two/" + file)) << file;
}

// Training decodes the weights on the device; checkpoints and the exported adapter equal the CPU's.
TEST_F(Trained, AnAdapterOfAQuantisedModelIsThatOfTheCpu) {
  testing::make_model(folder_ / "model");
  nlohmann::json config = conversations(folder_ / "model");
  config["tuning"]["mode"] = "qlora";
  expect_same(config, {"adapter/adapter_model.safetensors",
                       "checkpoints/step-00000003/optimizer.safetensors"});
}

TEST_F(Trained, AnAdapterOfReplicasOnTwoDevicesIsThatOfTheCpu) {
  testing::make_model(folder_ / "model");
  nlohmann::json config = conversations(folder_ / "model");
  config["parallel"] = {{"strategy", "dp"}, {"replicas", 2}};
  expect_same(config, {"adapter/adapter_model.safetensors",
                       "checkpoints/step-00000003/optimizer.safetensors"});
}

}  // namespace
}  // namespace convoy
