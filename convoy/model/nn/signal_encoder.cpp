// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/signal_encoder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::nn {
namespace {

std::string stage_name(size_t stage) { return fmt::format("encoder.{}", stage); }

void check(const SignalEncoderSpec& spec) {
  if (spec.num_channels < 1 || spec.window_rows < 2)
    throw ConfigError(
        fmt::format("wanted windows of at least one channel and two rows, found {} and {}",
                    spec.num_channels, spec.window_rows),
        {.hint = "cut the data into longer windows"});
  if (spec.widths.empty() || spec.widths.size() != spec.kernel_sizes.size())
    throw ConfigError(
        fmt::format("wanted as many kernel sizes as widths, and at least one, found {} and {}",
                    spec.kernel_sizes.size(), spec.widths.size()),
        {.hint = "give classify.widths and classify.kernel_sizes as many entries"});
  int64_t rows = spec.window_rows;
  for (size_t stage = 0; stage < spec.widths.size(); ++stage) {
    if (spec.widths[stage] < 1 || spec.kernel_sizes[stage] < 1 || spec.kernel_sizes[stage] % 2 != 1)
      throw ConfigError(fmt::format("wanted widths above 0 and odd kernel sizes, found {} and {}",
                                    spec.widths[stage], spec.kernel_sizes[stage]),
                        {.hint = "such as classify.kernel_sizes: [5, 3]"});
    if (stage + 1 < spec.widths.size()) rows /= 2;
  }
  if (rows < 1)
    throw ConfigError(fmt::format("windows of {} rows are too short for {} stages",
                                  spec.window_rows, spec.widths.size()),
                      {.hint = "give fewer classify.widths, or longer windows"});
}

}  // namespace

SignalEncoder::SignalEncoder(SignalEncoderSpec spec, const SignalSource& source, at::Device device)
    : spec_(std::move(spec)) {
  check(spec_);
  int64_t channels = spec_.pooling == ChannelPooling::Joint ? spec_.num_channels : 1;
  const auto options = at::TensorOptions().device(device);
  for (size_t stage = 0; stage < spec_.widths.size(); ++stage) {
    const int64_t width = spec_.widths[stage];
    const int64_t kernel = spec_.kernel_sizes[stage];
    const std::string name = stage_name(stage);
    kernels::ConvStageTensors tensors;
    tensors.weight_OCK =
        source(name + ".conv.weight", {width, channels, kernel}, channels * kernel);
    tensors.bias_O = source(name + ".conv.bias", {width}, channels * kernel);
    tensors.gain_O = at::ones({width}, options);
    tensors.shift_O = at::zeros({width}, options);
    tensors.running_mean_O = at::zeros({width}, options);
    tensors.running_variance_O = at::ones({width}, options);
    stages_.push_back(std::move(tensors));
    channels = width;
  }
}

int64_t SignalEncoder::features() const {
  return spec_.widths.back() * (spec_.pooling == ChannelPooling::Flatten ? spec_.num_channels : 1);
}

at::Tensor SignalEncoder::run_stages(at::Tensor x_NLC, const SignalPass& pass, Residency* residency,
                                     size_t first_unit) const {
  for (size_t stage = 0; stage < stages_.size(); ++stage) {
    const UnitUse use(residency, first_unit + stage);
    const bool last = stage + 1 == stages_.size();
    x_NLC = use.leave(kernels::conv_stage(
        use.enter(x_NLC), stages_[stage],
        {.pool = last ? kernels::Pool::Mean : kernels::Pool::Pairs,
         .training = pass.training,
         .bf16 = pass.bf16,
         .momentum = pass.keeps_statistics ? kernels::ConvStageOptions().momentum : 0.0}));
  }
  return x_NLC;
}

at::Tensor SignalEncoder::forward(const at::Tensor& x_NLC, const SignalPass& pass,
                                  Residency* residency, size_t first_unit) const {
  CONVOY_INVARIANT(
      x_NLC.dim() == 3 && x_NLC.size(1) == spec_.window_rows && x_NLC.size(2) == spec_.num_channels,
      "wanted windows [N, {}, {}]", spec_.window_rows, spec_.num_channels);
  const int64_t windows = x_NLC.size(0);
  if (spec_.pooling == ChannelPooling::Joint) return run_stages(x_NLC, pass, residency, first_unit);
  if (spec_.pooling == ChannelPooling::First)
    return run_stages(x_NLC.narrow(2, 0, 1), pass, residency, first_unit);
  const at::Tensor alone = x_NLC.transpose(1, 2).reshape({-1, spec_.window_rows, 1});
  const at::Tensor features_NCF =
      run_stages(alone, pass, residency, first_unit).view({windows, spec_.num_channels, -1});
  return spec_.pooling == ChannelPooling::Flatten ? features_NCF.flatten(1) : features_NCF.mean(1);
}

std::vector<NamedTensor> SignalEncoder::stage_parameters(size_t stage) const {
  const kernels::ConvStageTensors& tensors = stages_[stage];
  const std::string name = stage_name(stage);
  return {{name + ".conv.weight", tensors.weight_OCK},
          {name + ".conv.bias", tensors.bias_O},
          {name + ".norm.weight", tensors.gain_O},
          {name + ".norm.bias", tensors.shift_O}};
}

std::vector<NamedTensor> SignalEncoder::parameters() const {
  std::vector<NamedTensor> all;
  for (size_t stage = 0; stage < stages_.size(); ++stage)
    for (NamedTensor& parameter : stage_parameters(stage)) all.push_back(std::move(parameter));
  return all;
}

std::vector<NamedTensor> SignalEncoder::stage_buffers(size_t stage) const {
  const std::string name = stage_name(stage) + ".norm";
  return {{name + ".running_mean", stages_[stage].running_mean_O},
          {name + ".running_var", stages_[stage].running_variance_O}};
}

std::vector<NamedTensor> SignalEncoder::buffers() const {
  std::vector<NamedTensor> all;
  for (size_t stage = 0; stage < stages_.size(); ++stage)
    for (NamedTensor& buffer : stage_buffers(stage)) all.push_back(std::move(buffer));
  return all;
}

std::vector<Unit> SignalEncoder::units() const {
  std::vector<Unit> units;
  for (size_t stage = 0; stage < stages_.size(); ++stage) {
    units.push_back({.name = stage_name(stage)});
    units.back().buffers = stage_buffers(stage);
    for (NamedTensor& parameter : stage_parameters(stage)) {
      Unit& unit = units.back();
      (parameter.value.requires_grad() ? unit.trained : unit.frozen).push_back(parameter);
    }
  }
  return units;
}

}  // namespace convoy::nn
