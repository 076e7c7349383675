// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/kernels/ops/op_table.h"
#include "convoy/optim/adamw.h"
#include "convoy/optim/clip.h"
#include "convoy/optim/schedule.h"

namespace convoy::optim {
namespace {

const nlohmann::json& golden() {
  static const nlohmann::json file = [] {
    const char* source = std::getenv("CONVOY_SOURCE_DIR");
    std::ifstream in(std::string(source == nullptr ? "." : source) +
                     "/tests/golden/optim/optim.json");
    return nlohmann::json::parse(in);
  }();
  return file;
}

at::Tensor tensor_of(const nlohmann::json& values) {
  return at::tensor(values.get<std::vector<float>>());
}

TEST(Schedule, EqualsTransformersAtEveryStep) {
  const double peak = golden()["peak"].get<double>();
  for (const auto& entry : golden()["schedules"]) {
    settings::ScheduleSettings settings;
    settings.lr_scheduler_type = entry["name"].get<std::string>();
    settings.warmup_ratio = entry["warmup_ratio"].get<double>();
    const auto& changed = entry["settings"];
    settings.num_cycles = changed.value("num_cycles", settings.num_cycles);
    settings.lr_end = changed.value("lr_end", settings.lr_end);
    settings.power = changed.value("power", settings.power);
    settings.min_lr_ratio = changed.value("min_lr_ratio", settings.min_lr_ratio);
    const LearningRateSchedule schedule(settings, peak, entry["total"].get<int64_t>());
    const auto rates = entry["rates"].get<std::vector<double>>();
    for (size_t step = 0; step < rates.size(); ++step) {
      EXPECT_NEAR(schedule.at(static_cast<int64_t>(step)), rates[step], 1e-15)
          << settings.lr_scheduler_type << " of " << rates.size() - 1 << " ratio "
          << settings.warmup_ratio << " step " << step;
    }
  }
}

TEST(Schedule, WarmupStepsBeatTheRatioAndBelowOneAreOne) {
  settings::ScheduleSettings settings;
  settings.warmup_ratio = 0.5;
  settings.warmup_steps = 3;
  EXPECT_EQ(LearningRateSchedule(settings, 1.0, 100).warmup_steps(), 3);
  settings.warmup_steps = 0.101;
  EXPECT_EQ(LearningRateSchedule(settings, 1.0, 100).warmup_steps(), 11);
  settings.warmup_steps = 0;
  EXPECT_EQ(LearningRateSchedule(settings, 1.0, 100).warmup_steps(), 50);
  EXPECT_EQ(LearningRateSchedule(settings, 1.0, 100).at(0), 0.0);
}

TEST(Schedule, RefusesWhatItCannotCompute) {
  settings::ScheduleSettings settings;
  settings.lr_scheduler_type = "polynomial";
  EXPECT_THROW(LearningRateSchedule(settings, 1e-8, 10), ConfigError);
  settings.lr_scheduler_type = "cosin";
  EXPECT_THROW(LearningRateSchedule(settings, 1e-3, 10), ConfigError);
}

std::vector<OptimizedParameter> two_parameters(at::ScalarType dtype) {
  const auto& start = golden()["adamw"]["start"];
  std::vector<OptimizedParameter> parameters;
  for (size_t index = 0; index < 2; ++index) {
    const at::Tensor value = tensor_of(start[index]);
    parameters.push_back({.name = index == 0 ? "linear.weight" : "norm.weight",
                          .value = value.to(dtype),
                          .gradient = at::zeros_like(value),
                          .decays = index == 0});
  }
  return parameters;
}

constexpr AdamWConfig kConfig{.beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-7, .weight_decay = 0.05};

void set_gradients(const AdamW& optimizer, size_t step) {
  for (size_t index = 0; index < 2; ++index) {
    at::Tensor gradient = optimizer.parameters()[index].gradient;
    gradient.copy_(tensor_of(golden()["adamw"]["gradients"][step][index]));
  }
}

TEST(AdamW, EqualsTorchForTwentySteps) {
  AdamW optimizer(kConfig, two_parameters(at::kFloat));
  const auto& values = golden()["adamw"]["values"];
  for (size_t step = 0; step < values.size(); ++step) {
    set_gradients(optimizer, step);
    optimizer.step(1e-2);
    for (size_t index = 0; index < 2; ++index) {
      EXPECT_TRUE(at::allclose(optimizer.parameters()[index].value, tensor_of(values[step][index]),
                               2e-6, 1e-7))
          << "step " << step << " parameter " << index;
    }
  }
}

TEST(AdamW, GradientScaleIsFoldedIn) {
  AdamW plain(kConfig, two_parameters(at::kFloat));
  AdamW scaled(kConfig, two_parameters(at::kFloat));
  set_gradients(plain, 0);
  set_gradients(scaled, 0);
  for (const OptimizedParameter& parameter : scaled.parameters())
    at::Tensor(parameter.gradient).mul_(4);
  plain.step(1e-2);
  scaled.step(1e-2, 0.25);
  EXPECT_TRUE(at::equal(plain.parameters()[0].value, scaled.parameters()[0].value));
}

TEST(AdamW, Bf16ParametersFollowAnFp32Master) {
  AdamW wide(kConfig, two_parameters(at::kFloat));
  AdamW narrow(kConfig, two_parameters(at::kBFloat16));
  at::Tensor(wide.parameters()[0].value).copy_(narrow.parameters()[0].value);
  for (size_t step = 0; step < 20; ++step) {
    set_gradients(wide, step);
    set_gradients(narrow, step);
    wide.step(1e-5);
    narrow.step(1e-5);
  }
  EXPECT_TRUE(at::equal(narrow.full_precision_values()[0], wide.parameters()[0].value));
  EXPECT_TRUE(
      at::equal(narrow.parameters()[0].value, wide.parameters()[0].value.to(at::kBFloat16)));
}

// Whoever keeps what follows from a parameter looks at its version.
TEST(AdamW, AStepIsCountedAsAChangeOfEachParameter) {
  for (const bool own_loops : {true, false}) {
    std::optional<kernels::CpuTableOverride> as_other_devices;
    if (!own_loops) as_other_devices.emplace(kernels::aten_op_table());
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      AdamW optimizer(kConfig, two_parameters(dtype));
      set_gradients(optimizer, 0);
      for (int step = 0; step < 2; ++step) {
        const auto before = optimizer.parameters()[step].value._version();
        optimizer.step(1e-2);
        EXPECT_GT(optimizer.parameters()[step].value._version(), before) << dtype;
      }
    }
  }
}

TEST(AdamW, StateRoundTripsBitForBit) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    AdamW unbroken(kConfig, two_parameters(dtype));
    AdamW resumed(kConfig, two_parameters(dtype));
    for (size_t step = 0; step < 5; ++step) {
      set_gradients(unbroken, step);
      unbroken.step(1e-2);
    }
    for (size_t index = 0; index < 2; ++index) {
      at::Tensor(resumed.parameters()[index].value).copy_(unbroken.parameters()[index].value);
    }
    resumed.load_state(unbroken.steps(), unbroken.state());
    set_gradients(unbroken, 5);
    set_gradients(resumed, 5);
    unbroken.step(1e-2);
    resumed.step(1e-2);
    for (size_t index = 0; index < 2; ++index) {
      EXPECT_TRUE(at::equal(unbroken.parameters()[index].value, resumed.parameters()[index].value));
    }
  }
}

TEST(AdamW, RefusesAStateOfOtherParameters) {
  AdamW optimizer(kConfig, two_parameters(at::kFloat));
  std::vector<NamedState> state = optimizer.state();
  state.pop_back();
  EXPECT_THROW(optimizer.load_state(1, state), CheckpointError);
  state = optimizer.state();
  state.push_back({"other.exp_avg", at::zeros({1})});
  EXPECT_THROW(optimizer.load_state(1, state), CheckpointError);
  state = optimizer.state();
  state[0].value = at::zeros({2});
  EXPECT_THROW(optimizer.load_state(1, state), CheckpointError);
  EXPECT_EQ(optimizer.steps(), 0);
}

TEST(AdamW, DecayFollowsTheTrainersNames) {
  EXPECT_TRUE(takes_weight_decay("model.layers.0.self_attn.q_proj.weight"));
  EXPECT_TRUE(takes_weight_decay("model.embed_tokens.weight"));
  EXPECT_TRUE(takes_weight_decay("base_model.model.model.layers.0.mlp.up_proj.lora_A.weight"));
  EXPECT_FALSE(takes_weight_decay("model.layers.0.self_attn.q_proj.bias"));
  EXPECT_FALSE(takes_weight_decay("model.layers.0.input_layernorm.weight"));
  EXPECT_FALSE(takes_weight_decay("model.layers.0.self_attn.q_norm.weight"));
  EXPECT_FALSE(takes_weight_decay("model.norm.weight"));
}

TEST(Schedule, CosineByEpochIsTorchsSteppedOnceAnEpoch) {
  const auto cases =
      nlohmann::json::parse(read_file(std::filesystem::path(std::getenv("CONVOY_SOURCE_DIR")) /
                                      "tests/golden/signals/cosine_by_epoch.json"));
  ASSERT_GE(cases.size(), 4U);
  constexpr int64_t kStepsPerEpoch = 7;
  for (const auto& one : cases) {
    settings::ScheduleSettings settings;
    settings.lr_scheduler_type = "cosine_by_epoch";
    settings.warmup_epochs = one["warmup_epochs"];
    settings.min_lr = one["min_lr"];
    const int64_t epochs = one["epochs"];
    const LearningRateSchedule schedule(settings, one["learning_rate"], epochs * kStepsPerEpoch,
                                        kStepsPerEpoch);
    for (int64_t step = 0; step < epochs * kStepsPerEpoch; ++step)
      EXPECT_NEAR(schedule.at(step), one["rates"][static_cast<size_t>(step / kStepsPerEpoch)], 1e-9)
          << one.dump() << " step " << step;
  }
}

TEST(Clip, EqualsTorch) {
  for (const auto& entry : golden()["clip"]) {
    std::vector<at::Tensor> gradients;
    for (const auto& values : entry["gradients"]) gradients.push_back(tensor_of(values));
    const double norm = global_norm(gradients);
    EXPECT_NEAR(norm, entry["norm"].get<double>(), 1e-6 * norm);
    const double coefficient = clip_coefficient(norm, 1.0);
    for (size_t index = 0; index < gradients.size(); ++index) {
      EXPECT_TRUE(at::allclose(gradients[index] * coefficient, tensor_of(entry["clipped"][index]),
                               1e-6, 1e-9));
    }
  }
}

TEST(Clip, NotANumberIsReported) {
  EXPECT_TRUE(std::isnan(global_norm({at::ones({3}), at::tensor({1.0f, NAN})})));
  EXPECT_TRUE(std::isinf(global_norm({at::tensor({1.0f, INFINITY})})));
  EXPECT_TRUE(std::isnan(clip_coefficient(NAN, 1.0)));
  EXPECT_EQ(clip_coefficient(100.0, 0.0), 1.0);
}

}  // namespace
}  // namespace convoy::optim
