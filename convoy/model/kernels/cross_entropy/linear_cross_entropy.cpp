// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/cross_entropy/linear_cross_entropy.h"

#include <algorithm>
#include <limits>

#include "convoy/core/base/error.h"
#include "convoy/machine/device/transfer.h"
#include "convoy/model/kernels/cross_entropy/head_products.h"
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

// The loss `head.loss` as an op of the head's inputs, whose gradients `head` has.
at::Tensor with_head_backward(const char* op, const HeadLoss& head, const at::Tensor& hidden_TD,
                              const at::Tensor& weight_VD, const at::Tensor& tokens_N) {
  return with_backward(
      head.loss, {.op = op,
                  .inputs = {hidden_TD, weight_VD},
                  .saved = {head.hidden_ND, head.weight_VD, tokens_N},
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

// fp32 logits of a chunk of linear_logit_loss(): 64 MiB, since a loss holds several tensors of
// their size.
constexpr int64_t kLogitsOfLoss = 1 << 24;
constexpr int64_t kMostRowsOfLoss = 1024;

HeadLoss loss_of_chunks(const at::Tensor& hidden_ND, const OutputHead& head, WantedGradients wanted,
                        const LogitLossFunction& loss) {
  const at::Tensor& weight_VD = head.weight_VD;
  const WideProducts& products = wide_products(hidden_ND);
  const bool wants_gradient = wanted.hidden || wanted.weight;
  HeadLoss result = head_loss_to_add(hidden_ND, weight_VD, wanted);
  at::Tensor sum = at::zeros({}, hidden_ND.options().dtype(at::kDouble));
  const int64_t rows = rows_of_logit_loss(weight_VD.size(0));
  for (int64_t first = 0; first < hidden_ND.size(0); first += rows) {
    const int64_t count = std::min(rows, hidden_ND.size(0) - first);
    const at::Tensor hidden_CD = hidden_ND.narrow(0, first, count);
    const at::Tensor logits_CV =
        capped_logits(products.multiply(hidden_CD, weight_VD.t()), head.form.cap);
    // Slope of the soft cap, 1 - tanh^2: taken before the loss overwrites the logits.
    at::Tensor slope_CV;
    if (wants_gradient && head.form.cap > 0)
      slope_CV = logits_CV.div(head.form.cap).square_().neg_().add_(1.0);
    LogitLoss found = loss(first, logits_CV, wants_gradient);
    sum.add_(found.sum);
    if (!wants_gradient) continue;
    if (slope_CV.defined()) found.gradient_CV.mul_(slope_CV);
    const at::Tensor gradient_CV = found.gradient_CV.to(hidden_ND.scalar_type());
    if (wanted.hidden)
      result.hidden_ND.narrow(0, first, count).copy_(at::mm(gradient_CV, weight_VD));
    if (wanted.weight) products.add_product(result.weight_VD, gradient_CV.t(), hidden_CD);
  }
  result.loss = sum.to(at::kFloat);
  return result;
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
  return with_head_backward("linear_cross_entropy", head, hidden_TD, weight_VD, labels.tokens_N());
}

int64_t rows_of_logit_loss(int64_t vocab) {
  return std::clamp<int64_t>(kLogitsOfLoss / std::max<int64_t>(vocab, 1), 1, kMostRowsOfLoss);
}

at::Tensor linear_logit_loss(const at::Tensor& hidden_TD, const at::Tensor& weight_VD,
                             const at::Tensor& tokens_N, double logit_cap,
                             const LogitLossFunction& loss) {
  const bool records = records_gradient({hidden_TD, weight_VD});
  const WantedGradients wants = {.hidden = records && hidden_TD.requires_grad(),
                                 .weight = records && weight_VD.requires_grad()};
  const at::NoGradGuard no_grad;
  const HeadLoss head = loss_of_chunks(hidden_TD.index_select(0, tokens_N),
                                       {weight_VD, {.cap = logit_cap}}, wants, loss);
  if (!records) return head.loss;
  return with_head_backward("linear_logit_loss", head, hidden_TD, weight_VD, tokens_N);
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
