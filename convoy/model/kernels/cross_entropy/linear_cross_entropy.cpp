// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/cross_entropy/linear_cross_entropy.h"

#include <algorithm>
#include <limits>

#include "convoy/core/base/error.h"
#include "convoy/machine/device/transfer.h"
#include "convoy/model/kernels/cross_entropy/linear_cross_entropy_ops.h"
#include "convoy/model/kernels/ops/autograd.h"

namespace convoy::kernels {
namespace {

void check_inputs(const at::Tensor& hidden_TD, const at::Tensor& weight_VD,
                  const LabelledTokens& labels) {
  CONVOY_INVARIANT(
      hidden_TD.dim() == 2 && weight_VD.dim() == 2 && weight_VD.is_contiguous() &&
          hidden_TD.size(1) == weight_VD.size(1) &&
          hidden_TD.scalar_type() == weight_VD.scalar_type(),
      "linear_cross_entropy needs hidden [T, D] and a contiguous weight [V, D] of one dtype");
  CONVOY_INVARIANT(labels.num_tokens() == hidden_TD.size(0),
                   "linear_cross_entropy needs labels of the {} tokens, found {}",
                   hidden_TD.size(0), labels.num_tokens());
  CONVOY_INVARIANT(labels.lowest() >= 0 && labels.highest() < weight_VD.size(0),
                   "labels must be in 0 <= label < {}, found {} to {}", weight_VD.size(0),
                   labels.lowest(), labels.highest());
}

void check_form(const LogitForm& form) {
  CONVOY_INVARIANT(form.cap >= 0 && form.temperature > 0,
                   "logits need a cap from 0 and a temperature above 0, found {} and {}", form.cap,
                   form.temperature);
}

}  // namespace

LabelledTokens::LabelledTokens(std::span<const int64_t> labels, at::Device device,
                               std::span<const float> weights)
    : num_tokens_(static_cast<int64_t>(labels.size())) {
  std::vector<int64_t> tokens;
  std::vector<int64_t> kept;
  std::vector<float> kept_weights;
  for (size_t token = 0; token < labels.size(); ++token) {
    if (labels[token] == kIgnoredLabel) continue;
    tokens.push_back(static_cast<int64_t>(token));
    kept.push_back(labels[token]);
    if (!weights.empty()) kept_weights.push_back(weights[token]);
  }
  if (!kept.empty()) {
    const auto [lowest, highest] = std::minmax_element(kept.begin(), kept.end());
    lowest_ = *lowest;
    highest_ = *highest;
  }
  tokens_N_ = device::to_device<int64_t>(tokens, device);
  labels_N_ = device::to_device<int64_t>(kept, device);
  if (!weights.empty()) weights_N_ = device::to_device<float>(kept_weights, device);
}

LabelledTokens LabelledTokens::weighted(at::Tensor weights_N) const {
  CONVOY_INVARIANT(weights_N.dim() == 1 && weights_N.size(0) == num_labels() &&
                       weights_N.scalar_type() == at::kFloat && weights_N.is_contiguous(),
                   "{} labels need as many weights in fp32", num_labels());
  LabelledTokens other = *this;
  other.weights_N_ = std::move(weights_N);
  return other;
}

at::Tensor linear_cross_entropy(const at::Tensor& hidden_TD, const at::Tensor& weight_VD,
                                const LabelledTokens& labels, const LogitForm& form) {
  check_inputs(hidden_TD, weight_VD, labels);
  check_form(form);
  const bool records = records_gradient({hidden_TD, weight_VD});
  const WantedGradients wants = {.hidden = records && hidden_TD.requires_grad(),
                                 .weight = records && weight_VD.requires_grad()};
  const at::NoGradGuard no_grad;
  const at::Tensor hidden_ND = hidden_TD.index_select(0, labels.tokens_N());
  const HeadLoss head =
      cross_entropy_ops(hidden_TD.device())
          .loss(hidden_ND, {weight_VD, form}, {labels.labels_N(), labels.weights_N()}, wants);
  if (!records) return head.loss;
  return with_backward(
      head.loss, {.op = "linear_cross_entropy",
                  .inputs = {hidden_TD, weight_VD},
                  .saved = {head.hidden_ND, head.weight_VD, labels.tokens_N()},
                  .gradients = [tokens = hidden_TD.size(0), dtype = weight_VD.scalar_type()](
                                   const at::Tensor& grad, const std::vector<at::Tensor>& saved,
                                   const std::vector<bool>&) -> std::vector<at::Tensor> {
                    const auto scaled = cross_entropy_ops(grad.device()).scaled;
                    at::Tensor grad_hidden_TD;
                    at::Tensor grad_weight_VD;
                    if (saved[0].defined())
                      grad_hidden_TD = at::zeros({tokens, saved[0].size(1)}, saved[0].options())
                                           .index_copy_(0, saved[2], scaled(saved[0], grad, dtype));
                    if (saved[1].defined()) grad_weight_VD = scaled(saved[1], grad, dtype);
                    return {grad_hidden_TD, grad_weight_VD};
                  }});
}

TokenLosses linear_token_losses(const at::Tensor& hidden_TD, const at::Tensor& weight_VD,
                                const LabelledTokens& labels, const LogitForm& form) {
  check_inputs(hidden_TD, weight_VD, labels);
  check_form(form);
  const at::NoGradGuard no_grad;
  const at::Tensor hidden_ND = hidden_TD.index_select(0, labels.tokens_N());
  const LabelLosses found = cross_entropy_ops(hidden_TD.device())
                                .label_losses(hidden_ND, {weight_VD, form}, labels.labels_N());
  const auto spread = [&](const at::Tensor& values_N) {
    return at::zeros({labels.num_tokens()}, values_N.options())
        .index_copy_(0, labels.tokens_N(), values_N);
  };
  return {.nll_T = spread(found.nll_N), .correct_T = spread(found.correct_N)};
}

float logit_factor(double temperature) {
  constexpr double kSmallest = std::numeric_limits<float>::min();
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(1.0 / temperature, kSmallest, kLargest));
}

at::Tensor capped_logits(const at::Tensor& logits, double logit_cap) {
  if (logit_cap == 0) return logits;
  const at::NoGradGuard no_grad;
  return cross_entropy_ops(logits.device()).capped_logits(logits, logit_cap);
}

}  // namespace convoy::kernels
