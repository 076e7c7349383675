// SPDX-License-Identifier: Apache-2.0
//
// Compares training on preferences with TRL's trainers (tests/golden/preferences), and with other
// ranks, strategies, accumulation and packing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "parity/trl_golden.h"

namespace convoy {
namespace {

using nlohmann::json;
using testing::ConvoyProgram;
using testing::expect_close;
using testing::Layout;

// Returns the configuration of a case of golden.json.
json config_of(const ConvoyProgram& convoy, const json& golden, const json& one) {
  json config = testing::trl_config(convoy, golden, one);
  config["task"] = one["trainer"] == "orpo" ? "orpo" : "dpo";
  config["train"]["grad_accum"] = one["grad_accum"];
  // TRL's reference is the adapter in its initial state, which changes nothing here.
  if (one["tuning"] != "full" && one["trainer"] == "dpo" &&
      one["preference"].value("loss", "") != "simpo")
    config["preference"]["reference"] = "start";
  return config;
}

TEST(Preferences, FollowTrlForEveryLossFullAndLora) {
  const json golden = testing::read_trl_golden("golden.json");
  for (const json& one : golden["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const ConvoyProgram convoy;
    const std::vector<json> steps = convoy.train("run", config_of(convoy, golden, one));
    ASSERT_EQ(steps.size(), one["curve"].size());
    for (size_t step = 0; step < steps.size(); ++step)
      for (const auto& [name, wanted] : one["curve"][step].items()) {
        // The trainers of CPO and ORPO report means over tokens under this name.
        if (one["trainer"] != "dpo" && name.starts_with("logps")) continue;
        const double beside = name.starts_with("rewards")
                                  ? one["preference"].value("beta", 0.1) * testing::kLastBit
                                  : 0;
        expect_close(steps[step][name], wanted, fmt::format("{} of step {}", name, step),
                     beside + testing::rounding_of(one, name));
      }
    testing::expect_weights(convoy / ("run/" + testing::trained_file(one)), one);
  }
}

// By default the reference is the base without the adapter. A named reference is another model:
// here the same one, so all figures are equal.
TEST(Preferences, ReferencesOfEveryKindAgreeWhereTheyAreOneModel) {
  const json golden = testing::read_trl_golden("golden.json");
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

void expect_same_steps(json config) {
  const ConvoyProgram convoy;
  config["model"] = {{"name", convoy.model("qwen3").string()}, {"max_seq_len", 128}};
  config["data"] = {{"train_path", (testing::trl_folder() / "chats.jsonl").string()}};
  const json one = {{"strategy", "auto"}};
  const std::vector<json> wanted = train_in_layout(convoy, "wanted", config, {one, 1, 1});
  ASSERT_EQ(wanted.size(), 4U);
  EXPECT_LT(wanted[3]["loss"], wanted[0]["loss"]);
  int number = 0;
  for (const Layout& layout :
       std::vector<Layout>{{one, 1, 4},
                           {one, 1, 1, true},
                           {one, 1, 2, true, true},
                           {{{"strategy", "ddp"}}, 2, 2},
                           {{{"strategy", "ddp"}}, 4, 1},
                           {{{"strategy", "dp"}, {"replicas", 2}}, 2, 1},
                           {{{"strategy", "zero1"}}, 2, 1},
                           {{{"strategy", "zero2"}}, 2, 2, true},
                           {{{"strategy", "zero3"}, {"keep_whole_below", 0}}, 2, 1},
                           {{{"strategy", "zero3"}, {"keep_whole_below", 0}}, 4, 2, true, true}})
    expect_same_figures(
        train_in_layout(convoy, fmt::format("layout-{}", ++number), config, layout), wanted,
        {"loss", "grad_norm", "rewards/chosen", "rewards/margins", "rows", "supervised_tokens"},
        layout);
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
