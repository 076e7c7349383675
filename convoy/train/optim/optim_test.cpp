// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/model/kernels/counter_draws/counter_hash.h"
#include "convoy/model/kernels/registry/op_table.h"
#include "convoy/train/optim/adamw.h"
#include "convoy/train/optim/clip.h"
#include "convoy/train/optim/schedule.h"

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

TEST(Schedule, EqualsDeepSpeedAtEveryStep) {
  const char* source = std::getenv("CONVOY_SOURCE_DIR");
  std::ifstream in(std::string(source == nullptr ? "." : source) +
                   "/tests/golden/optim/deepspeed_schedules.json");
  const nlohmann::json file = nlohmann::json::parse(in);
  ASSERT_GE(file["schedules"].size(), 20U);
  for (const auto& entry : file["schedules"]) {
    settings::ScheduleSettings settings;
    settings.lr_scheduler_type = entry["name"].get<std::string>();
    const auto& changed = entry["settings"];
    settings.warmup_steps = changed["warmup_steps"].get<double>();
    settings.min_lr_ratio = changed.value("min_lr_ratio", 0.0);
    settings.warmup.warmup_type = changed["warmup_type"].get<std::string>();
    settings.warmup.warmup_min_lr = changed.value("warmup_min_lr", 0.0);
    settings.warmup.warmup_min_ratio = changed.value("warmup_min_ratio", 0.0);
    const auto total = entry["total"].get<int64_t>();
    const double peak = file["peak"].get<double>();
    const LearningRateSchedule of_run(settings, peak, total);
    settings.warmup.schedule_steps = total;
    const LearningRateSchedule of_its_own(settings, peak, 3);
    const auto rates = entry["rates"].get<std::vector<double>>();
    for (size_t step = 0; step < rates.size(); ++step) {
      EXPECT_NEAR(of_run.at(static_cast<int64_t>(step)), rates[step], 1e-15)
          << entry.dump(-1).substr(0, 200) << " step " << step;
      EXPECT_EQ(of_its_own.at(static_cast<int64_t>(step)), of_run.at(static_cast<int64_t>(step)));
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
  EXPECT_TRUE(
      at::equal(narrow.parameters()[0].value, wide.parameters()[0].value.to(at::kBFloat16)));
}

// Caches of values that are derived from a parameter check its version counter.
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

const nlohmann::json& golden_8bit() {
  static const nlohmann::json file =
      nlohmann::json::parse(read_file(std::filesystem::path(std::getenv("CONVOY_SOURCE_DIR")) /
                                      "tests/golden/optim/adamw_8bit.json"));
  return file;
}

// The numbers of make_adamw_8bit.py, between -1 and 1.
at::Tensor numbers(uint64_t key, int64_t count) {
  at::Tensor values = at::empty({count});
  for (int64_t at = 0; at < count; ++at) {
    const uint32_t word =
        kernels::counter_hash(kernels::counter_key(key), static_cast<uint32_t>(at), 0);
    values.mutable_data_ptr<float>()[at] = (static_cast<float>(word >> 8) - 0x1p23f) / 0x1p23f;
  }
  return values;
}

at::Tensor golden_gradient(int step, int64_t count) {
  at::Tensor found = numbers((static_cast<uint64_t>(step) << 32) + 7, count);
  found.mul_(1e-3 * (step % 3 == 0 ? 3.0 : 1.0));
  found.narrow(0, 256, 256).zero_();
  found.narrow(0, 600, 10).mul_(1e-4);
  return found;
}

at::Tensor codes_of(const std::string& hex) {
  at::Tensor codes = at::empty({static_cast<int64_t>(hex.size()) / 2}, at::kByte);
  for (size_t at = 0; at < hex.size() / 2; ++at)
    codes.mutable_data_ptr<uint8_t>()[at] =
        static_cast<uint8_t>(std::stoul(hex.substr(2 * at, 2), nullptr, 16));
  return codes;
}

TEST(AdamW8Bit, FollowsBitsandbytesStepByStep) {
  const auto& settings = golden_8bit()["settings"];
  const auto& coded = golden_8bit()["coded"];
  const int64_t count = coded["count"];
  AdamW optimizer({.beta1 = settings["beta1"],
                   .beta2 = settings["beta2"],
                   .epsilon = settings["epsilon"],
                   .weight_decay = settings["weight_decay"],
                   .states = {.moments = MomentType::Int8}},
                  {{.name = "w", .value = numbers(3, count), .gradient = at::zeros({count})}});
  int64_t other_codes = 0;
  for (int step = 1; step <= golden_8bit()["steps"].get<int>(); ++step) {
    at::Tensor(optimizer.parameters()[0].gradient).copy_(golden_gradient(step, count));
    optimizer.step(settings["learning_rate"]);
    for (const auto& kept : coded["kept"]) {
      if (kept["step"] != step) continue;
      for (const NamedState& state : optimizer.state()) {
        const std::string key = state.name.substr(2);
        if (state.value.scalar_type() == at::kFloat) {
          EXPECT_TRUE(at::allclose(state.value, tensor_of(kept[key]), 1e-5, 0)) << step << key;
          continue;
        }
        const at::Tensor apart =
            state.value.to(at::kInt).sub(codes_of(kept[key]).to(at::kInt)).abs();
        EXPECT_LE(apart.max().item<int>(), 1) << step << key;
        other_codes += apart.sum().item<int64_t>();
      }
    }
  }
  // Some of the 4 x 2 x 4396 values lie at a threshold between two codes. There the last bit in
  // fp32 decides, and Python and Convoy round in different orders.
  EXPECT_LE(other_codes, 8);
  EXPECT_TRUE(at::allclose(optimizer.parameters()[0].value, tensor_of(coded["value"]), 1e-4, 2e-5));
}

std::vector<OptimizedParameter> large_and_small(at::ScalarType dtype) {
  std::vector<OptimizedParameter> parameters;
  for (const int64_t count : {int64_t{120'000}, int64_t{5'000}, int64_t{4095}})
    parameters.push_back({.name = fmt::format("w{}", count),
                          .value = numbers(static_cast<uint64_t>(count), count).to(dtype),
                          .gradient = at::zeros({count})});
  return parameters;
}

void step_with_numbers(AdamW& optimizer, int step) {
  for (size_t index = 0; index < optimizer.parameters().size(); ++index) {
    const at::Tensor gradient = optimizer.parameters()[index].gradient;
    gradient.copy_(numbers(static_cast<uint64_t>(step * 100) + index, gradient.numel()));
  }
  optimizer.step(1e-3);
}

std::vector<AdamWConfig> all_forms() {
  std::vector<AdamWConfig> forms;
  for (const MomentType moments : {MomentType::Fp32, MomentType::Bf16, MomentType::Int8})
    for (const bool has_masters : {true, false})
      forms.push_back({.weight_decay = 0.1,
                       .states = {.moments = moments, .has_masters = has_masters},
                       .seed = 5});
  return forms;
}

TEST(AdamWStates, SmallParametersKeepFp32AndBytesAreAsTold) {
  for (const AdamWConfig& config : all_forms())
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      const AdamW optimizer(config, large_and_small(dtype));
      std::vector<int64_t> held(3);
      for (const NamedState& state : optimizer.state())
        held[state.parameter] += static_cast<int64_t>(state.value.nbytes());
      for (size_t index = 0; index < 3; ++index) {
        const int64_t numel = optimizer.parameters()[index].value.numel();
        const StateBytes told = state_bytes(config.states, numel, dtype == at::kBFloat16);
        EXPECT_EQ(held[index], told.moments + told.master);
      }
      if (config.states.moments == MomentType::Int8) {
        EXPECT_EQ(moment_type(config.states, 4095), MomentType::Fp32);
      }
    }
}

TEST(AdamWStates, EveryFormIsResumedBitForBit) {
  for (const AdamWConfig& config : all_forms())
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      AdamW unbroken(config, large_and_small(dtype)), resumed(config, large_and_small(dtype));
      for (int step = 0; step < 3; ++step) step_with_numbers(unbroken, step);
      for (size_t index = 0; index < 3; ++index)
        at::Tensor(resumed.parameters()[index].value).copy_(unbroken.parameters()[index].value);
      resumed.load_state(unbroken.steps(), unbroken.state());
      for (int step = 3; step < 5; ++step) {
        step_with_numbers(unbroken, step);
        step_with_numbers(resumed, step);
      }
      for (size_t index = 0; index < 3; ++index)
        EXPECT_TRUE(
            at::equal(unbroken.parameters()[index].value, resumed.parameters()[index].value));
    }
}

TEST(AdamWStates, OtherSeedsRoundOtherwise) {
  AdamWConfig config{.states = {.moments = MomentType::Bf16}, .seed = 1};
  AdamW one(config, large_and_small(at::kFloat));
  config.seed = 2;
  AdamW other(config, large_and_small(at::kFloat));
  for (int step = 0; step < 2; ++step) {
    step_with_numbers(one, step);
    step_with_numbers(other, step);
  }
  EXPECT_FALSE(at::equal(one.state()[0].value, other.state()[0].value));
  // Both 8-bit states are close to the fp32 state.
  AdamW wide({}, large_and_small(at::kFloat));
  for (int step = 0; step < 2; ++step) step_with_numbers(wide, step);
  EXPECT_TRUE(at::allclose(one.state()[0].value.to(at::kFloat), wide.state()[0].value, 0.02, 2e-3));
}

TEST(AdamWStates, AStateOfAnotherFormIsRefused) {
  AdamW wide({}, large_and_small(at::kFloat));
  AdamW narrow({.states = {.moments = MomentType::Bf16}}, large_and_small(at::kFloat));
  AdamW coded({.states = {.moments = MomentType::Int8}}, large_and_small(at::kFloat));
  EXPECT_THROW(narrow.load_state(1, wide.state()), CheckpointError);
  EXPECT_THROW(coded.load_state(1, wide.state()), CheckpointError);
  EXPECT_THROW(wide.load_state(1, coded.state()), CheckpointError);
}

TEST(AdamW, ARateOfItsOwnIsAFactorOfTheStep) {
  for (const double factor : {1.0, 16.0}) {
    std::vector<OptimizedParameter> parameters = two_parameters(at::kFloat);
    parameters[1].lr_factor = factor;
    AdamW optimizer(kConfig, parameters);
    AdamW alone(kConfig, two_parameters(at::kFloat));
    set_gradients(optimizer, 0);
    set_gradients(alone, 0);
    optimizer.step(1e-3);
    alone.step(1e-3 * factor);
    EXPECT_TRUE(at::equal(optimizer.parameters()[1].value, alone.parameters()[1].value));
    EXPECT_EQ(at::equal(optimizer.parameters()[0].value, alone.parameters()[0].value),
              factor == 1.0);
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
  EXPECT_FALSE(takes_weight_decay("model.layers.0.layer_scalar"));
  EXPECT_TRUE(takes_weight_decay("model.embed_tokens_per_layer.weight"));
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
