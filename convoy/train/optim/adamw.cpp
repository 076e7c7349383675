// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/optim/adamw.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>
#include <map>
#include <regex>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/lower_case.h"

namespace convoy::optim {
namespace {

bool is_trained_type(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16;
}

void check(const OptimizedParameter& parameter) {
  CONVOY_INVARIANT(is_trained_type(parameter.value), "{} needs fp32 or bf16, found {}",
                   parameter.name, c10::toString(parameter.value.scalar_type()));
  CONVOY_INVARIANT(parameter.value.is_contiguous(), "{} is not contiguous", parameter.name);
  CONVOY_INVARIANT(parameter.gradient.defined() && is_trained_type(parameter.gradient) &&
                       parameter.gradient.is_contiguous() &&
                       parameter.gradient.sizes() == parameter.value.sizes(),
                   "{} needs a contiguous gradient of its shape in fp32 or bf16", parameter.name);
  CONVOY_INVARIANT(parameter.begin % kernels::kMomentBlock == 0,
                   "the piece of {} begins within a block, at element {}", parameter.name,
                   parameter.begin);
}

int64_t whole_numel(const OptimizedParameter& parameter) {
  return parameter.whole_numel > 0 ? parameter.whole_numel : parameter.value.numel();
}

uint64_t hash_of(const std::string& name) {
  return uint64_t{crc32c(name)} << 32 | crc32c(name, ~0u);
}

void wait_for(at::Device device) {
  c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
}

}  // namespace

bool takes_weight_decay(const std::string& parameter_name) {
  // Gemma 4's layer_scalar never trains, so it must not decay either.
  static const std::regex exempt(
      R"(bias|layernorm|rmsnorm|(?:^|\.)norm(?:$|\.)|_norm(?:$|\.)|layer_scalar)");
  return !std::regex_search(lower_case(parameter_name), exempt);
}

AdamW::AdamW(const AdamWConfig& config, std::vector<OptimizedParameter> parameters)
    : config_(config), parameters_(std::move(parameters)) {
  for (const OptimizedParameter& parameter : parameters_) {
    check(parameter);
    const at::Tensor value = parameter.value.detach();
    const bool wants_master = value.scalar_type() == at::kBFloat16 && config_.states.has_masters;
    slots_.push_back({.moments = Moments::zeros(config_.states, value, whole_numel(parameter)),
                      .master = wants_master ? value.to(at::kFloat) : at::Tensor()});
    names_.push_back(hash_of(parameter.name));
  }
}

void AdamW::step(double learning_rate, double gradient_scale) {
  ++steps_;
  // Parameters that share all factors of a step are updated by one call.
  std::map<std::pair<bool, double>, std::vector<size_t>> groups;
  for (size_t index = 0; index < parameters_.size(); ++index)
    groups[{parameters_[index].decays, parameters_[index].lr_factor}].push_back(index);
  for (const auto& [factors, group] : groups) {
    const auto& [decays, lr_factor] = factors;
    const kernels::AdamWStep step{.learning_rate = learning_rate * lr_factor,
                                  .beta1 = config_.beta1,
                                  .beta2 = config_.beta2,
                                  .epsilon = config_.epsilon,
                                  .weight_decay = decays ? config_.weight_decay : 0.0,
                                  .gradient_scale = gradient_scale,
                                  .step = steps_};
    std::vector<kernels::AdamWTensors> resident;
    for (const size_t index : group) {
      if (slots_[index].moments.is_paged)
        step_paged(index, step);
      else
        resident.push_back(tensors_of(index, slots_[index].moments));
    }
    kernels::adamw_update(resident, step);
  }
}

// One parameter's moments are on the device at a time.
void AdamW::step_paged(size_t index, const kernels::AdamWStep& step) {
  const at::NoGradGuard no_grad;
  const Moments here = slots_[index].moments.on(parameters_[index].value.device());
  kernels::adamw_update({tensors_of(index, here)}, step);
  slots_[index].moments.copy_from(here);
}

kernels::AdamWTensors AdamW::tensors_of(size_t index, const Moments& moments) const {
  const OptimizedParameter& parameter = parameters_[index];
  const at::Tensor value = parameter.value.detach();
  const at::Tensor& master = slots_[index].master;
  const std::array<uint64_t, 3> counters = {config_.seed, static_cast<uint64_t>(steps_),
                                            names_[index]};
  return {.value = master.defined() ? master : value,
          .gradient = parameter.gradient,
          .exp_avg = moments.exp_avg,
          .exp_avg_sq = moments.exp_avg_sq,
          .exp_avg_scale = moments.exp_avg_scale,
          .exp_avg_sq_scale = moments.exp_avg_sq_scale,
          .rounded = master.defined() ? value : at::Tensor(),
          .draw_key = mix_seed(counters),
          .first_element = parameter.begin};
}

std::vector<NamedState> AdamW::state() const {
  std::vector<NamedState> all;
  bool waits = false;
  for (size_t index = 0; index < parameters_.size(); ++index) {
    const std::string& name = parameters_[index].name;
    const auto& [moments, master] = slots_[index];
    waits = waits || moments.is_paged;
    all.push_back({name + ".exp_avg", moments.exp_avg, index});
    all.push_back({name + ".exp_avg_sq", moments.exp_avg_sq, index});
    if (moments.exp_avg_scale.defined()) {
      all.push_back({name + ".exp_avg_scale", moments.exp_avg_scale, index, kernels::kMomentBlock});
      all.push_back(
          {name + ".exp_avg_sq_scale", moments.exp_avg_sq_scale, index, kernels::kMomentBlock});
    }
    if (master.defined()) all.push_back({name + ".master", master, index});
  }
  if (waits) wait_for(parameters_[0].value.device());
  return all;
}

void AdamW::load_state(int64_t steps, const std::vector<NamedState>& state) {
  std::map<std::string, at::Tensor> given;
  for (const NamedState& entry : state) given[entry.name] = entry.value;
  const std::vector<NamedState> own = this->state();
  for (const NamedState& entry : own) {
    const auto found = given.find(entry.name);
    if (found == given.end())
      throw CheckpointError(fmt::format("the optimizer state lacks {}", entry.name),
                            {.hint = "start anew with --resume never"});
    const at::Tensor& value = found->second;
    if (value.sizes() != entry.value.sizes() || value.scalar_type() != entry.value.scalar_type())
      throw CheckpointError(
          fmt::format("optimizer state {}: wanted {} elements of {}, found {} of {}", entry.name,
                      entry.value.numel(), c10::toString(entry.value.scalar_type()), value.numel(),
                      c10::toString(value.scalar_type())),
          {.hint = "restore the settings of the run, or start anew with --resume never"});
  }
  if (given.size() != own.size())
    throw CheckpointError(
        fmt::format("the optimizer state has {} tensors, this run needs {}: other parameters were "
                    "trained, or "
                    "their moments were kept in another form",
                    given.size(), own.size()),
        {.hint = "restore the settings of the run, or start anew with --resume never"});
  const at::NoGradGuard no_grad;
  for (const NamedState& entry : own) entry.value.copy_(given[entry.name]);
  for (size_t index = 0; index < parameters_.size(); ++index) {
    if (slots_[index].master.defined()) parameters_[index].value.copy_(slots_[index].master);
  }
  steps_ = steps;
}

}  // namespace convoy::optim
