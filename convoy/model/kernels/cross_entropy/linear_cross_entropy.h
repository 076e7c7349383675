// SPDX-License-Identifier: Apache-2.0
//
// Output head and cross-entropy in one op, in chunks of supervised rows, so that the logits of a
// whole batch never exist (Liger-Kernel, arXiv 2410.10989; apple/ml-cross-entropy, arXiv
// 2411.09009). Shapes: T tokens, D hidden, V vocabulary.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>

namespace convoy::kernels {

inline constexpr int64_t kIgnoredLabel = -100;

// The tokens of a batch that have a label. Made once per batch, on the host, so that no op waits
// for the device.
class LabelledTokens {
 public:
  // `labels`: one per token, kIgnoredLabel where there is none. `weights`: one per token,
  // multiplies its loss; empty: 1 for all. Async.
  explicit LabelledTokens(std::span<const int64_t> labels, at::Device device = at::kCPU,
                          std::span<const float> weights = {});

  // The same labels with other weights, fp32 [N] on their device.
  LabelledTokens weighted(at::Tensor weights_N) const;

  int64_t num_tokens() const { return num_tokens_; }  // with and without a label
  int64_t num_labels() const { return tokens_N_.size(0); }
  const at::Tensor& tokens_N() const { return tokens_N_; }    // int64, ascending
  const at::Tensor& labels_N() const { return labels_N_; }    // int64
  const at::Tensor& weights_N() const { return weights_N_; }  // fp32; undefined: 1 for all
  int64_t lowest() const { return lowest_; }                  // the lowest label; 0 without labels
  int64_t highest() const { return highest_; }

 private:
  int64_t num_tokens_;
  int64_t lowest_ = 0;
  int64_t highest_ = 0;
  at::Tensor tokens_N_;
  at::Tensor labels_N_;
  at::Tensor weights_N_;
};

// The form of a model's logits. They are the products of its head, under a soft cap where there is
// one, then times logit_factor() of the temperature.
struct LogitForm {
  double cap = 0;          // as in capped_logits(); 0 = none
  double temperature = 1;  // above 0
};

// 1 / temperature in fp32, finite and above 0. Logits are multiplied by it in fp32 wherever a
// log-probability at a temperature is computed, so that its bits do not depend on where.
float logit_factor(double temperature);

// Sum over supervised tokens of -log softmax(logits)[label], each times the token's weight, fp32
// scalar, with logits = hidden @ weight^T in their form; differentiable in hidden and, if it
// requires grad, in weight. Tokens without a label cost nothing. Logits and sums in fp32. Gradients
// are computed during forward and only scaled in backward, so nothing of size T x V is kept.
at::Tensor linear_cross_entropy(const at::Tensor& hidden_TD, const at::Tensor& weight_VD,
                                const LabelledTokens& labels, const LogitForm& form = {});

struct TokenLosses {
  at::Tensor nll_T;      // fp32, 0 where ignored
  at::Tensor correct_T;  // bool: the label is the most likely token
};
// The losses for evaluation and scoring: without weights, and not differentiable.
TokenLosses linear_token_losses(const at::Tensor& hidden_TD, const at::Tensor& weight_VD,
                                const LabelledTokens& labels, const LogitForm& form = {});

// A loss of the logits of some tokens.
struct LogitLoss {
  at::Tensor sum;          // fp64 scalar
  at::Tensor gradient_CV;  // gradient of the sum in the logits, fp32; undefined unless wanted
};
// Gets the logits of the tokens tokens_N[first .. first + C], fp32, which it may overwrite.
using LogitLossFunction =
    std::function<LogitLoss(int64_t first, const at::Tensor& logits_CV, bool wants_gradient)>;

// Sum of `loss` over the tokens tokens_N, int64 rows of `hidden`, fp32 scalar; differentiable as
// linear_cross_entropy() is, and like it in chunks, with gradients computed during forward.
// Without tokens: 0. `logit_cap`: as in capped_logits().
at::Tensor linear_logit_loss(const at::Tensor& hidden_TD, const at::Tensor& weight_VD,
                             const at::Tensor& tokens_N, double logit_cap,
                             const LogitLossFunction& loss);
// The most tokens that linear_logit_loss() gives to its loss together.
int64_t rows_of_logit_loss(int64_t vocab);

// The logits of a model with a soft cap (Gemma 2) from the products of its head: logit_cap *
// tanh(logits / logit_cap), fp32, so that logits which differ in bf16 stay in their order. Where
// logit_cap is 0, the logits as they are. May write into `logits`; not differentiable.
at::Tensor capped_logits(const at::Tensor& logits, double logit_cap);

}  // namespace convoy::kernels
