// SPDX-License-Identifier: Apache-2.0
#include "convoy/optim/adamw.h"

#include <regex>

#include "convoy/base/error.h"

namespace convoy::optim {
namespace {

void check(const OptimizedParameter& parameter) {
  CONVOY_INVARIANT(
      parameter.value.scalar_type() == at::kFloat || parameter.value.scalar_type() == at::kBFloat16,
      "{} wants fp32 or bf16, found {}", parameter.name,
      c10::toString(parameter.value.scalar_type()));
  CONVOY_INVARIANT(parameter.value.is_contiguous(), "{} is not contiguous", parameter.name);
  CONVOY_INVARIANT(parameter.gradient.defined() && parameter.gradient.scalar_type() == at::kFloat &&
                       parameter.gradient.is_contiguous() &&
                       parameter.gradient.sizes() == parameter.value.sizes(),
                   "{} wants a contiguous fp32 gradient of its shape", parameter.name);
}

}  // namespace

bool takes_weight_decay(const std::string& parameter_name) {
  static const std::regex exempt(R"(bias|layernorm|rmsnorm|(?:^|\.)norm(?:$|\.)|_norm(?:$|\.))");
  std::string lower = parameter_name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return !std::regex_search(lower, exempt);
}

AdamW::AdamW(const AdamWConfig& config, std::vector<OptimizedParameter> parameters)
    : config_(config), parameters_(std::move(parameters)) {
  for (const OptimizedParameter& parameter : parameters_) {
    check(parameter);
    const at::Tensor value = parameter.value.detach();
    const auto options = value.options().dtype(at::kFloat);
    slots_.push_back(
        {.exp_avg = at::zeros(value.sizes(), options),
         .exp_avg_sq = at::zeros(value.sizes(), options),
         .master = value.scalar_type() == at::kFloat ? at::Tensor() : value.to(at::kFloat)});
  }
}

void AdamW::step(double learning_rate, double gradient_scale) {
  ++steps_;
  kernels::AdamWStep step{.learning_rate = learning_rate,
                          .beta1 = config_.beta1,
                          .beta2 = config_.beta2,
                          .epsilon = config_.epsilon,
                          .gradient_scale = gradient_scale,
                          .step = steps_};
  for (const bool decays : {true, false}) {
    std::vector<kernels::AdamWTensors> alike;
    for (size_t index = 0; index < parameters_.size(); ++index)
      if (parameters_[index].decays == decays) alike.push_back(tensors_of(index));
    step.weight_decay = decays ? config_.weight_decay : 0.0;
    kernels::adamw_update(alike, step);
  }
}

kernels::AdamWTensors AdamW::tensors_of(size_t index) const {
  const at::Tensor value = parameters_[index].value.detach();
  const Slot& slot = slots_[index];
  const bool has_master = slot.master.defined();
  return {.value = has_master ? slot.master : value,
          .gradient = parameters_[index].gradient,
          .exp_avg = slot.exp_avg,
          .exp_avg_sq = slot.exp_avg_sq,
          .rounded = has_master ? value : at::Tensor()};
}

std::vector<NamedState> AdamW::state() const {
  std::vector<NamedState> all;
  for (size_t index = 0; index < parameters_.size(); ++index) {
    const std::string& name = parameters_[index].name;
    all.push_back({name + ".exp_avg", slots_[index].exp_avg, index});
    all.push_back({name + ".exp_avg_sq", slots_[index].exp_avg_sq, index});
    if (slots_[index].master.defined())
      all.push_back({name + ".master", slots_[index].master, index});
  }
  return all;
}

void AdamW::load_state(int64_t steps, const std::vector<NamedState>& state) {
  std::map<std::string, at::Tensor> given;
  for (const NamedState& entry : state) given[entry.name] = entry.value;
  const std::vector<NamedState> own = this->state();
  for (const NamedState& entry : own) {
    const auto found = given.find(entry.name);
    CONVOY_CHECK(found != given.end(), CheckpointError, "the optimizer state lacks {}", entry.name);
    CONVOY_CHECK(
        found->second.sizes() == entry.value.sizes() && found->second.scalar_type() == at::kFloat,
        CheckpointError, "optimizer state {}: wanted fp32 of {} elements, found {} of {}",
        entry.name, entry.value.numel(), c10::toString(found->second.scalar_type()),
        found->second.numel());
  }
  CONVOY_CHECK(
      given.size() == own.size(), CheckpointError,
      "the optimizer state has {} tensors, this run wants {}: other parameters were trained",
      given.size(), own.size());
  const at::NoGradGuard no_grad;
  for (const NamedState& entry : own) entry.value.copy_(given[entry.name]);
  for (size_t index = 0; index < parameters_.size(); ++index) {
    if (slots_[index].master.defined()) parameters_[index].value.copy_(slots_[index].master);
  }
  steps_ = steps;
}

std::vector<at::Tensor> AdamW::full_precision_values() const {
  std::vector<at::Tensor> values;
  for (size_t index = 0; index < parameters_.size(); ++index) {
    values.push_back(slots_[index].master.defined() ? slots_[index].master
                                                    : parameters_[index].value.detach());
  }
  return values;
}

}  // namespace convoy::optim
