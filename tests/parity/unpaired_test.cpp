// SPDX-License-Identifier: Apache-2.0
//
// Learning from answers that are called good or bad, against TRL's KTOTrainer
// (tests/golden/preferences), and against itself under other ranks, strategies, accumulation and
// packing.
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

constexpr double kUnpairedTolerance = 1e-5;  // relative for figures above 1

fs::path unpaired_folder() { return golden_folder().parent_path() / "preferences"; }

json unpaired() { return json::parse(read_file(unpaired_folder() / "unpaired.json")); }

void expect_near(double found, double wanted, const std::string& what, double beside = 0) {
  EXPECT_LE(std::abs(found - wanted), kUnpairedTolerance * std::max(1.0, std::abs(wanted)) + beside)
      << what << ": " << found << ", wanted " << wanted;
}

// Of a case in unpaired.json, for the model of tests/golden/train.
json unpaired_config(const ConvoyProgram& convoy, const json& golden, const json& one) {
  json config = {
      {"task", "kto"},
      {"model", {{"name", convoy.model("qwen2").string()}, {"max_seq_len", 256}}},
      {"preference", one["preference"]},
      {"train",
       {{"steps", golden["steps"]},
        {"batch_size", one["batch_size"]},
        {"learning_rate", golden["learning_rate"]},
        {"adam_epsilon", golden["adam_epsilon"]},
        {"lr_scheduler_type", "constant"},
        {"weight_decay", 0.0},
        {"max_grad_norm", 1.0}}},
      {"data",
       {{"train_path", (unpaired_folder() / (one["rows"].get<std::string>() + ".jsonl")).string()},
        {"shuffle", false},
        {"balance_tokens", false}}}};
  if (one["tuning"] == "full") {
    config["tuning"]["mode"] = "full";
  } else {
    config["tuning"]["lora"]["adapter"] = (golden_folder() / "qwen2/start").string();
    config["preference"]["reference"] = "start";  // TRL's, here a map of zeros
  }
  if (!one["test_rows"].is_null()) {
    config["data"]["val_path"] =
        (unpaired_folder() / (one["test_rows"].get<std::string>() + ".jsonl")).string();
    config["train"]["final_eval"] = true;
  }
  return config;
}

void expect_trained(const fs::path& file, const json& wanted) {
  const io::SafetensorsFile stored(file);
  EXPECT_EQ(stored.tensors().size(), wanted.size());
  for (const auto& [name, figures] : wanted.items()) {
    const io::TensorView& view = stored.require(name);
    std::vector<float> values(view.bytes.size() / sizeof(float));
    std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
    double squares = 0;
    double product = 0;
    for (size_t at = 0; at < values.size(); ++at) {
      const auto value = static_cast<double>(values[at]);
      squares += value * value;
      product += value * std::cos(static_cast<double>(at));
    }
    expect_near(std::sqrt(squares), figures[0], "norm of " + name);
    // A sum of as many products as there are weights, each of which may be off by the tolerance.
    expect_near(product, figures[1], "product of " + name,
                kUnpairedTolerance * std::sqrt(static_cast<double>(values.size())) / 4);
  }
}

void expect_figures(const json& found, const json& wanted, const std::string& where) {
  for (const auto& [name, value] : wanted.items()) {
    ASSERT_TRUE(found.contains(name)) << name << where;
    // The last bit of a log-probability below -128 in fp32.
    constexpr double kLastBit = 1.6e-5;
    expect_near(found[name], value, name + where, name == "loss" ? 0 : kLastBit);
  }
}

TEST(Unpaired, FollowsTrlFullAndLora) {
  const json golden = unpaired();
  for (const json& one : golden["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const ConvoyProgram convoy;
    const std::vector<json> steps = convoy.train("run", unpaired_config(convoy, golden, one));
    ASSERT_EQ(steps.size(), one["curve"].size());
    for (size_t step = 0; step < steps.size(); ++step)
      expect_figures(steps[step], one["curve"][step], fmt::format(" of step {}", step));
    expect_trained(convoy / (one["tuning"] == "full" ? "run/model/model.safetensors"
                                                     : "run/adapter/adapter_model.safetensors"),
                   one["weights"]);
    if (!one.contains("evaluation")) continue;
    json found;
    for (const json& event : testing::read_json_lines(convoy / "run/events.jsonl"))
      if (event["event"] == "eval") found = event;
    expect_figures(found, one["evaluation"], " of the evaluation");
  }
}

struct UnpairedLayout {
  json parallel;
  int ranks;
  int accumulation;
  bool packed = false;
};

// Every step sees all 24 rows, so that blocks and rows make the same global batch.
std::vector<json> train_judged_rows(const ConvoyProgram& convoy, const std::string& name,
                                    const std::string& model, const UnpairedLayout& layout,
                                    const json& settings) {
  const int slots = layout.ranks * layout.accumulation;
  json config = {{"task", "kto"},
                 {"model", {{"name", model}, {"max_seq_len", 128}}},
                 {"parallel", layout.parallel},
                 {"train",
                  {{"steps", 4},
                   {"batch_size", (24 + slots - 1) / slots},
                   {"grad_accum", layout.accumulation},
                   {"learning_rate", 2e-3},
                   {"packing", layout.packed}}},
                 {"data",
                  {{"train_path", (unpaired_folder() / "unpaired_chats.jsonl").string()},
                   {"shuffle", false}}}};
  config.update(settings);
  const bool in_threads = layout.parallel["strategy"] == "dp";
  return convoy.train(name, config, fmt::format("--nproc {}", in_threads ? 1 : layout.ranks));
}

// Packing orders the rows of a step in another way, and with them whose answer a prompt gets.
void expect_equal_steps(const json& settings) {
  const ConvoyProgram convoy;
  const std::string model = convoy.model("qwen3").string();
  const json one = {{"strategy", "auto"}};
  int number = 0;
  for (const bool packed : {false, true}) {
    const std::vector<json> wanted = train_judged_rows(convoy, fmt::format("wanted-{}", packed),
                                                       model, {one, 1, 1, packed}, settings);
    ASSERT_EQ(wanted.size(), 4U);
    EXPECT_LT(wanted[3]["loss"], wanted[0]["loss"]);
    EXPECT_GT(wanted[3]["kl"], 0);
    for (const UnpairedLayout& layout :
         std::vector<UnpairedLayout>{{one, 1, 2},
                                     {{{"strategy", "ddp"}}, 2, 1},
                                     {{{"strategy", "ddp"}}, 2, 2},
                                     {{{"strategy", "dp"}, {"replicas", 2}}, 2, 1},
                                     {{{"strategy", "zero2"}}, 2, 1},
                                     {{{"strategy", "zero3"}, {"keep_whole_below", 0}}, 2, 2}}) {
      UnpairedLayout own = layout;
      own.packed = packed;
      const std::vector<json> found =
          train_judged_rows(convoy, fmt::format("layout-{}", ++number), model, own, settings);
      ASSERT_EQ(found.size(), wanted.size());
      for (size_t step = 0; step < wanted.size(); ++step)
        for (const char* figure :
             {"loss", "grad_norm", "kl", "rewards/margins", "rows", "supervised_tokens"})
          expect_near(
              found[step][figure], wanted[step][figure],
              fmt::format("{} of step {}, ranks {}, accumulation {}, packed {}, {}", figure, step,
                          layout.ranks, layout.accumulation, packed, layout.parallel.dump()));
    }
  }
}

TEST(Unpaired, FullTrainingIsTheSameUnderRanksStrategiesAndAccumulation) {
  expect_equal_steps({{"tuning", {{"mode", "full"}}}});
}

TEST(Unpaired, LoraIsTheSameUnderRanksStrategiesAndAccumulation) {
  expect_equal_steps({{"tuning", {{"lora", {{"r", 4}, {"dropout", 0}}}}}});
}

}  // namespace
}  // namespace convoy
