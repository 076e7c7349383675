// SPDX-License-Identifier: Apache-2.0
//
// Runs a user's commands on the simulated device: train, stop and resume, score, generate, merge.
// The resulting files have the same bytes as the CPU's files with the same table of ops.
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/apps/recipes/evaluate/evaluate_model.h"
#include "convoy/apps/recipes/evaluate/score.h"
#include "convoy/apps/recipes/generate/generate_text.h"
#include "convoy/apps/recipes/model_files/merge_adapter.h"
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

const Log kQuiet(LogLevel::Quiet);

// Runs all commands on one kind of device, in a folder of its own.
class Side {
 public:
  explicit Side(std::string devices) : devices_(std::move(devices)) {
    testing::make_model(folder_ / "model");
    config_ = {{"seed", 3},
               {"model", {{"name", text("model")}, {"max_seq_len", 128}, {"dtype", "fp32"}}},
               {"data",
                {{"train_path", chats()},
                 {"cache_dir", "none"},
                 {"split", {{"train_ratio", 0.8}, {"val_ratio", 0.2}, {"test_ratio", 0}}}}},
               {"tuning", {{"mode", "lora"}, {"lora", {{"r", 2}, {"alpha", 4}, {"dropout", 0.1}}}}},
               {"train",
                {{"steps", 4},
                 {"batch_size", 2},
                 {"grad_accum", 2},
                 {"learning_rate", 0.01},
                 {"max_grad_norm", 0.1},
                 {"gradient_checkpointing", true},
                 {"eval_strategy", "steps"},
                 {"eval_steps", 2},
                 {"save_strategy", "steps"},
                 {"save_steps", 2},
                 {"async_save", true}}},
               {"logging", {{"backend", "none"}}}};
  }

  nlohmann::json& config() { return config_; }
  std::string text(const std::string& name) const { return (folder_ / name).string(); }

  void train(const std::string& run) {
    const auto held = telemetry::RunFolder::create(folder_ / run, run);
    write_file_atomic(held.config_path(), config_.dump());  // JSON is also YAML
    const std::atomic<bool> stop = false;
    EXPECT_EQ(
        recipes::fine_tune(
            {.run_folder = folder_ / run, .settings = {held.config_path()}, .devices = devices_},
            stop, kQuiet),
        ExitCode::Done);
  }
  void score(const std::string& adapter, const std::string& output) {
    settings::ScoreFlags flags;
    flags.data = chats();
    flags.output = text(output);
    recipes::score(model(adapter), flags, ranks(), kQuiet);
  }
  void generate(const std::string& adapter, const std::string& output) {
    recipes::GenerateRun run;
    run.model = model(adapter);
    run.ranks = ranks();
    run.json = true;
    run.flags.prompts = chats();
    run.flags.output = text(output);
    run.sampling.max_new_tokens = 6;
    run.sampling.temperature = 0.8;
    run.engine.batch_size = 4;
    run.engine.deterministic = config_["train"].value("deterministic", false);
    recipes::generate_text(run, kQuiet);
  }
  void merge(const std::string& adapter, const std::string& output) {
    settings::MergeFlags flags;
    flags.output = text(output);
    recipes::merge_adapter(model(adapter), flags, ranks(), kQuiet);
  }
  std::string bytes(const std::string& file) const { return read_file(folder_ / file); }

 private:
  static std::string chats() { return (golden_folder() / "train/chats.jsonl").string(); }
  settings::RankFlags ranks() const {
    settings::RankFlags flags;
    flags.devices = devices_;
    return flags;
  }
  settings::ModelFlags model(const std::string& adapter) const {
    settings::ModelFlags flags;
    flags.model = text("model");
    flags.adapter = text(adapter);
    flags.dtype = "fp32";
    return flags;
  }

  std::string devices_;
  convoy::testing::TemporaryFolder folder_;
  nlohmann::json config_;
};

class WholePath : public ::testing::Test {
 protected:
  WholePath() {
    simulated::install(2);
    device_.emplace("sim");
    cpu_.emplace("cpu");
  }
  void TearDown() override { EXPECT_TRUE(simulated::take_findings().empty()); }

  template <class Command>
  void on_both(Command command) {
    command(*device_);
    const kernels::CpuTableOverride same_ops(kernels::aten_op_table());
    command(*cpu_);
  }
  void expect_same(const std::string& file) {
    EXPECT_EQ(device_->bytes(file), cpu_->bytes(file)) << file;
  }

  std::optional<Side> device_;
  std::optional<Side> cpu_;
};

constexpr const char* kLastState = "checkpoints/step-00000004/optimizer.safetensors";

TEST_F(WholePath, AnAdapterIsTrainedScoredUsedAndMerged) {
  on_both([](Side& side) {
    side.train("run");
    side.score("run/adapter", "scores.jsonl");
    side.generate("run/adapter", "answers.jsonl");
    side.merge("run/adapter", "merged");
  });
  expect_same("run/adapter/adapter_model.safetensors");
  expect_same(std::string("run/") + kLastState);
  expect_same("scores.jsonl");
  expect_same("answers.jsonl");
  expect_same("merged/model.safetensors");
}

TEST_F(WholePath, ARunThatGoesOnEndsAsOneThatWasNotStopped) {
  for (const char* const mode : {"lora", "full"}) {
    device_->config()["tuning"]["mode"] = mode;
    device_->config()["train"]["steps"] = 4;
    const std::string unbroken = std::string("unbroken-") + mode;
    const std::string run = std::string("run-") + mode;
    device_->train(unbroken);
    fs::create_directories(device_->text(run + "/checkpoints"));
    fs::copy(device_->text(unbroken + "/checkpoints/step-00000002"),
             device_->text(run + "/checkpoints/step-00000002"), fs::copy_options::recursive);
    device_->train(run);
    EXPECT_EQ(device_->bytes(run + "/" + kLastState), device_->bytes(unbroken + "/" + kLastState));
    const std::string result = std::string(mode) == "lora" ? "/adapter/adapter_model.safetensors"
                                                           : "/model/model.safetensors";
    EXPECT_EQ(device_->bytes(run + result), device_->bytes(unbroken + result));
  }
}

TEST_F(WholePath, DeterministicTakesLibTorchsModeOnDevicesAlone) {
  const at::Context& context = at::globalContext();
  for (Side* side : {&*cpu_, &*device_}) {
    side->config()["train"]["deterministic"] = true;
    side->train("run");
    side->generate("run/adapter", "answers.jsonl");
    EXPECT_EQ(context.deterministicAlgorithms(), side == &*device_);
  }
  EXPECT_FALSE(context.deterministicAlgorithmsWarnOnly());
  EXPECT_FALSE(context.deterministicFillUninitializedMemory());
  EXPECT_TRUE(context.deterministicCuDNN());
  EXPECT_STREQ(std::getenv("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
  at::globalContext().setDeterministicAlgorithms(false, false);
}

TEST_F(WholePath, AFullDeviceSaysWhatItHoldsAndWhatToLower) {
  device_->config()["tuning"]["mode"] = "full";
  device_->config()["train"]["gradient_checkpointing"] = false;
  device_->train("fits");
  simulated::set_capacity(0, simulated::memory(0).peak_bytes * 3 / 4);
  try {
    device_->train("run");
    ADD_FAILURE() << "it fits";
  } catch (const IoError& error) {
    const std::string sentence = error.sentence();
    for (const char* const words :
         {"sim:0 is full: it holds ", " of trained weights, ", " of gradients, ",
          " of optimizer states, ", " of activations", "lower train.batch_size (now 2",
          "set train.gradient_checkpointing: true", "lower model.max_seq_len (now 128)"})
      EXPECT_NE(sentence.find(words), std::string::npos) << sentence;
  }
  simulated::set_capacity(0, 0);
}

}  // namespace
}  // namespace convoy
