// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/optimizer_settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"

namespace convoy::recipes {
namespace {

optim::OptimizedParameter named(const std::string& name) {
  optim::OptimizedParameter parameter;
  parameter.name = name;
  parameter.decays = optim::takes_weight_decay(name);
  return parameter;
}

TEST(LoraPlus, RatesAndDecayArePefts) {
  const auto golden =
      nlohmann::json::parse(read_file(std::filesystem::path(std::getenv("CONVOY_SOURCE_DIR")) /
                                      "tests/golden/optim/loraplus.json"));
  ASSERT_EQ(golden["cases"].size(), 3U);
  for (const auto& wanted : golden["cases"]) {
    std::vector<optim::OptimizedParameter> parameters;
    std::vector<int64_t> dims;
    for (const auto& one : wanted) {
      parameters.push_back(named(one["name"]));
      dims.push_back(one["dims"]);
    }
    set_loraplus_rates(parameters, dims, golden["ratio"]);
    for (size_t at = 0; at < parameters.size(); ++at) {
      EXPECT_EQ(parameters[at].lr_factor, wanted[at]["rate"]) << parameters[at].name;
      EXPECT_EQ(parameters[at].decays, wanted[at]["decay"] == golden["decay"])
          << parameters[at].name;
    }
  }
}

TEST(LoraPlus, ARatioOfZeroIsOff) {
  std::vector<optim::OptimizedParameter> parameters = {named("x.lora_B.weight")};
  set_loraplus_rates(parameters, {2}, 0);
  EXPECT_EQ(parameters[0].lr_factor, 1);
}

TEST(OptimizerStates, FollowTheNamesOfTransformers) {
  settings::TrainingSettings train;
  const auto states = [&](const char* optim, const char* dtype) {
    train.optim = optim;
    train.optimizer.optimizer_state_dtype = dtype;
    return optimizer_states(train);
  };
  EXPECT_EQ(states("adamw_torch", "auto").moments, optim::MomentType::Fp32);
  EXPECT_EQ(states("adamw_torch_fused", "bf16").moments, optim::MomentType::Bf16);
  for (const char* name : {"adamw_8bit", "adamw_bnb_8bit", "paged_adamw_8bit"})
    EXPECT_EQ(states(name, "auto").moments, optim::MomentType::Int8);
  EXPECT_TRUE(states("paged_adamw_8bit", "auto").is_paged);
  EXPECT_TRUE(states("paged_adamw_32bit", "auto").is_paged);
  EXPECT_FALSE(states("adamw_8bit", "auto").is_paged);
  EXPECT_TRUE(states("adamw", "auto").has_masters);
  train.optimizer.master_weights = "none";
  EXPECT_FALSE(optimizer_states(train).has_masters);
}

}  // namespace
}  // namespace convoy::recipes
