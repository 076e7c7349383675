// SPDX-License-Identifier: Apache-2.0
//
// Learning from preferences against TRL's trainers (tests/golden/preferences), and against itself
// under other ranks, strategies, accumulation and packing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "convoy/core/base/files.h"
#include "convoy/core/io/safetensors.h"
#include "parity/convoy_program.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ConvoyProgram;
using testing::golden_folder;

constexpr double kTolerance = 1e-5;  // relative for figures above 1

fs::path preferences_folder() { return golden_folder().parent_path() / "preferences"; }

json preferences() { return json::parse(read_file(preferences_folder() / "golden.json")); }

void expect_close(double found, double wanted, const std::string& what) {
  EXPECT_LE(std::abs(found - wanted), kTolerance * std::max(1.0, std::abs(wanted)))
      << what << ": " << found << ", wanted " << wanted;
}

// Of a case in golden.json, for the model of tests/golden/train.
json config_of(const ConvoyProgram& convoy, const json& golden, const json& one) {
  const bool is_orpo = one["trainer"] == "orpo";
  json config = {{"task", is_orpo ? "orpo" : "dpo"},
                 {"model", {{"name", convoy.model("qwen2").string()}, {"max_seq_len", 256}}},
                 {"preference", one["preference"]},
                 {"train",
                  {{"steps", golden["steps"]},
                   {"batch_size", one["batch_size"]},
                   {"grad_accum", one["grad_accum"]},
                   {"learning_rate", golden["learning_rate"]},
                   {"adam_epsilon", golden["adam_epsilon"]},
                   {"lr_scheduler_type", "constant"},
                   {"weight_decay", 0.0},
                   {"max_grad_norm", 1.0}}},
                 {"data",
                  {{"train_path",
                    (preferences_folder() / (one["rows"].get<std::string>() + ".jsonl")).string()},
                   {"balance_tokens", false}}}};
  if (one["tuning"] == "full") {
    config["tuning"]["mode"] = "full";
  } else {
    config["tuning"]["lora"]["adapter"] = (golden_folder() / "qwen2/start").string();
    // TRL's reference is the adapter as it starts, here a map of zeros.
    if (one["trainer"] == "dpo" && one["preference"].value("loss", "") != "simpo")
      config["preference"]["reference"] = "start";
  }
  return config;
}

void expect_weights(const fs::path& file, const json& wanted) {
  const io::SafetensorsFile stored(file);
  EXPECT_EQ(stored.tensors().size(), wanted.size());
  for (const auto& [name, figures] : wanted.items()) {
    const io::TensorView& view = stored.require(name);
    ASSERT_EQ(view.dtype, io::Dtype::F32);
    std::vector<float> values(view.bytes.size() / sizeof(float));
    std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
    double squares = 0;
    double product = 0;
    for (size_t at = 0; at < values.size(); ++at) {
      const auto value = static_cast<double>(values[at]);
      squares += value * value;
      product += value * std::cos(static_cast<double>(at));
    }
    expect_close(std::sqrt(squares), figures[0], "norm of " + name);
    expect_close(product, figures[1], "product of " + name);
  }
}

TEST(Preferences, FollowTrlForEveryLossFullAndLora) {
  const json golden = preferences();
  for (const json& one : golden["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const ConvoyProgram convoy;
    const std::vector<json> steps = convoy.train("run", config_of(convoy, golden, one));
    ASSERT_EQ(steps.size(), one["curve"].size());
    for (size_t step = 0; step < steps.size(); ++step)
      for (const auto& [name, wanted] : one["curve"][step].items()) {
        // CPO's and ORPO's trainers report means over tokens here.
        if (one["trainer"] != "dpo" && name.starts_with("logps")) continue;
        expect_close(steps[step][name], wanted, fmt::format("{} of step {}", name, step));
      }
    expect_weights(convoy / (one["tuning"] == "full" ? "run/model/model.safetensors"
                                                     : "run/adapter/adapter_model.safetensors"),
                   one["weights"]);
  }
}

// The reference is the base without the adapter by default, and another model where one is named:
// here the same one, so every figure is equal.
TEST(Preferences, ReferencesOfEveryKindAgreeWhereTheyAreOneModel) {
  const json golden = preferences();
  const ConvoyProgram convoy;
  json config = config_of(convoy, golden, golden["cases"][1]);
  ASSERT_EQ(golden["cases"][1]["name"], "sigmoid-lora");
  const std::vector<json> wanted = convoy.train("start", config);
  for (const std::string& reference : {std::string("base"), convoy.model("qwen2").string()}) {
    config["preference"]["reference"] = reference;
    const std::vector<json> found =
        convoy.train(reference == "base" ? "of-base" : "of-path", config);
    for (size_t step = 0; step < wanted.size(); ++step)
      EXPECT_EQ(found[step]["loss"], wanted[step]["loss"]) << reference << " step " << step;
  }
}

struct PairLayout {
  json parallel;
  int ranks;
  int accumulation;
  bool packed = false;
  bool recomputed = false;
};

// Every step sees all 24 pairs, so that blocks and pairs make the same global batch.
std::vector<json> train_all_pairs(const ConvoyProgram& convoy, const std::string& name,
                                  const std::string& model, const PairLayout& layout,
                                  const json& settings) {
  const int slots = layout.ranks * layout.accumulation;
  json config = {{"model", {{"name", model}, {"max_seq_len", 128}}},
                 {"parallel", layout.parallel},
                 {"train",
                  {{"steps", 4},
                   {"batch_size", (24 + slots - 1) / slots},
                   {"grad_accum", layout.accumulation},
                   {"learning_rate", 2e-3},
                   {"packing", layout.packed},
                   {"gradient_checkpointing", layout.recomputed}}},
                 {"data", {{"train_path", (preferences_folder() / "chats.jsonl").string()}}}};
  config.update(settings);
  // Replicas are threads of one process.
  const bool in_threads = layout.parallel["strategy"] == "dp";
  return convoy.train(name, config, fmt::format("--nproc {}", in_threads ? 1 : layout.ranks));
}

void expect_same_steps(const json& settings) {
  const ConvoyProgram convoy;
  const std::string model = convoy.model("qwen3").string();
  const json one = {{"strategy", "auto"}};
  const std::vector<json> wanted = train_all_pairs(convoy, "wanted", model, {one, 1, 1}, settings);
  ASSERT_EQ(wanted.size(), 4U);
  EXPECT_LT(wanted[3]["loss"], wanted[0]["loss"]);
  int number = 0;
  for (const PairLayout& layout : std::vector<PairLayout>{
           {one, 1, 4},
           {one, 1, 1, true},
           {one, 1, 2, true, true},
           {{{"strategy", "ddp"}}, 2, 2},
           {{{"strategy", "ddp"}}, 4, 1},
           {{{"strategy", "dp"}, {"replicas", 2}}, 2, 1},
           {{{"strategy", "zero1"}}, 2, 1},
           {{{"strategy", "zero2"}}, 2, 2, true},
           {{{"strategy", "zero3"}, {"keep_whole_below", 0}}, 2, 1},
           {{{"strategy", "zero3"}, {"keep_whole_below", 0}}, 4, 2, true, true}}) {
    const std::vector<json> found =
        train_all_pairs(convoy, fmt::format("layout-{}", ++number), model, layout, settings);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t step = 0; step < wanted.size(); ++step)
      for (const char* figure :
           {"loss", "grad_norm", "rewards/chosen", "rewards/margins", "rows", "supervised_tokens"})
        expect_close(
            found[step][figure], wanted[step][figure],
            fmt::format("{} of step {}, ranks {}, accumulation {}, packed {}, {}", figure, step,
                        layout.ranks, layout.accumulation, layout.packed, layout.parallel.dump()));
  }
}

TEST(Preferences, FullTrainingIsTheSameUnderRanksStrategiesAccumulationAndPacking) {
  expect_same_steps({{"task", "dpo"}, {"tuning", {{"mode", "full"}}}});
}

TEST(Preferences, LoraIsTheSameUnderRanksStrategiesAccumulationAndPacking) {
  expect_same_steps(
      {{"task", "orpo"}, {"tuning", {{"lora", {{"r", 4}, {"dropout", 0}, {"use_dora", true}}}}}});
}

}  // namespace
}  // namespace convoy
