// SPDX-License-Identifier: Apache-2.0
#include "convoy/optim/adamw.h"

#include <regex>

#include "convoy/base/error.h"
#include "convoy/kernels/simd/element.h"
#include "convoy/kernels/simd/simd_kernels.h"

namespace convoy::optim {
namespace {

void check(const OptimizedParameter& parameter) {
  kernels::require_supported(parameter.value, "adamw");
  CONVOY_INVARIANT(parameter.value.is_contiguous(), "{} is not contiguous", parameter.name);
  CONVOY_INVARIANT(parameter.gradient.defined() && parameter.gradient.scalar_type() == at::kFloat &&
                       parameter.gradient.is_contiguous() &&
                       parameter.gradient.sizes() == parameter.value.sizes(),
                   "{} wants a contiguous fp32 gradient of its shape", parameter.name);
}

kernels::AdamWFactors make_factors(const AdamWConfig& config, double weight_decay, int64_t step,
                                   double learning_rate, double gradient_scale) {
  const double correction1 = 1.0 - std::pow(config.beta1, static_cast<double>(step));
  const double correction2 = 1.0 - std::pow(config.beta2, static_cast<double>(step));
  return {.beta1 = static_cast<float>(config.beta1),
          .one_minus_beta1 = static_cast<float>(1.0 - config.beta1),
          .beta2 = static_cast<float>(config.beta2),
          .one_minus_beta2 = static_cast<float>(1.0 - config.beta2),
          .keep = static_cast<float>(1.0 - learning_rate * weight_decay),
          .step_size = static_cast<float>(learning_rate / correction1),
          .root_bias_correction = static_cast<float>(std::sqrt(correction2)),
          .epsilon = static_cast<float>(config.epsilon),
          .gradient_scale = static_cast<float>(gradient_scale)};
}

template <class Element>
void update(const kernels::AdamWFactors& factors, const at::Tensor& value,
            const at::Tensor& gradient, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
            Element* rounded) {
  const auto& loops = kernels::simd_kernels<Element>();
  float* values = value.mutable_data_ptr<float>();
  const float* gradients = gradient.const_data_ptr<float>();
  float* means = exp_avg.mutable_data_ptr<float>();
  float* squares = exp_avg_sq.mutable_data_ptr<float>();
  kernels::for_rows(value.numel(), 1, [&](int64_t begin, int64_t end) {
    loops.adamw(factors, values + begin, gradients + begin, means + begin, squares + begin,
                rounded == nullptr ? nullptr : rounded + begin, end - begin);
  });
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
  const kernels::AdamWFactors plain =
      make_factors(config_, 0.0, steps_, learning_rate, gradient_scale);
  const kernels::AdamWFactors decaying =
      make_factors(config_, config_.weight_decay, steps_, learning_rate, gradient_scale);
  for (size_t index = 0; index < parameters_.size(); ++index) {
    const OptimizedParameter& parameter = parameters_[index];
    const Slot& slot = slots_[index];
    const kernels::AdamWFactors& factors = parameter.decays ? decaying : plain;
    if (slot.master.defined()) {
      update(factors, slot.master, parameter.gradient, slot.exp_avg, slot.exp_avg_sq,
             parameter.value.mutable_data_ptr<at::BFloat16>());
    } else {
      update<float>(factors, parameter.value, parameter.gradient, slot.exp_avg, slot.exp_avg_sq,
                    nullptr);
    }
  }
}

std::vector<NamedState> AdamW::state() const {
  std::vector<NamedState> all;
  for (size_t index = 0; index < parameters_.size(); ++index) {
    const std::string& name = parameters_[index].name;
    all.push_back({name + ".exp_avg", slots_[index].exp_avg});
    all.push_back({name + ".exp_avg_sq", slots_[index].exp_avg_sq});
    if (slots_[index].master.defined()) all.push_back({name + ".master", slots_[index].master});
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
