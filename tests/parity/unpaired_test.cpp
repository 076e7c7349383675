// SPDX-License-Identifier: Apache-2.0
//
// Compares training on good and bad answers with TRL's KTOTrainer (tests/golden/preferences), and
// with other ranks, strategies, accumulation and packing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "parity/trl_golden.h"

namespace convoy {
namespace {

using nlohmann::json;
using testing::ConvoyProgram;
using testing::Layout;

// Returns the configuration of a case of unpaired.json.
json unpaired_config(const ConvoyProgram& convoy, const json& golden, const json& one) {
  json config = testing::trl_config(convoy, golden, one);
  config["task"] = "kto";
  config["data"]["shuffle"] = false;
  // TRL's reference is the adapter in its initial state, which changes nothing here.
  if (one["tuning"] != "full") config["preference"]["reference"] = "start";
  if (one["test_rows"].is_null()) return config;
  config["data"]["val_path"] =
      (testing::trl_folder() / (one["test_rows"].get<std::string>() + ".jsonl")).string();
  config["train"]["final_eval"] = true;
  return config;
}

void expect_figures(const json& one, const json& found, const json& wanted,
                    const std::string& where) {
  for (const auto& [name, value] : wanted.items()) {
    ASSERT_TRUE(found.contains(name)) << name << where;
    testing::expect_close(
        found[name], value, name + where,
        (name == "loss" ? 0 : testing::kLastBit) + testing::rounding_of(one, name));
  }
}

TEST(Unpaired, FollowsTrlFullAndLora) {
  const json golden = testing::read_trl_golden("unpaired.json");
  for (const json& one : golden["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const ConvoyProgram convoy;
    const std::vector<json> steps = convoy.train("run", unpaired_config(convoy, golden, one));
    ASSERT_EQ(steps.size(), one["curve"].size());
    for (size_t step = 0; step < steps.size(); ++step)
      expect_figures(one, steps[step], one["curve"][step], fmt::format(" of step {}", step));
    testing::expect_weights(convoy / ("run/" + testing::trained_file(one)), one);
    if (!one.contains("evaluation")) continue;
    json found;
    for (const json& event : testing::read_json_lines(convoy / "run/events.jsonl"))
      if (event["event"] == "eval") found = event;
    expect_figures(one, found, one["evaluation"], " of the evaluation");
  }
}

// Packing changes the order of a step's rows, and so the answer that each prompt is paired with for
// the KL term.
void expect_equal_steps(json config) {
  const ConvoyProgram convoy;
  config["task"] = "kto";
  config["model"] = {{"name", convoy.model("qwen3").string()}, {"max_seq_len", 128}};
  config["data"] = {{"train_path", (testing::trl_folder() / "unpaired_chats.jsonl").string()},
                    {"shuffle", false}};
  const json one = {{"strategy", "auto"}};
  int number = 0;
  for (const bool packed : {false, true}) {
    const std::vector<json> wanted =
        train_in_layout(convoy, fmt::format("wanted-{}", packed), config, {one, 1, 1, packed});
    ASSERT_EQ(wanted.size(), 4U);
    EXPECT_LT(wanted[3]["loss"], wanted[0]["loss"]);
    EXPECT_GT(wanted[3]["kl"], 0);
    for (Layout layout :
         std::vector<Layout>{{one, 1, 2},
                             {{{"strategy", "ddp"}}, 2, 1},
                             {{{"strategy", "ddp"}}, 2, 2},
                             {{{"strategy", "dp"}, {"replicas", 2}}, 2, 1},
                             {{{"strategy", "zero2"}}, 2, 1},
                             {{{"strategy", "zero3"}, {"keep_whole_below", 0}}, 2, 2}}) {
      layout.packed = packed;
      expect_same_figures(
          train_in_layout(convoy, fmt::format("layout-{}", ++number), config, layout), wanted,
          {"loss", "grad_norm", "kl", "rewards/margins", "rows", "supervised_tokens"}, layout);
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
