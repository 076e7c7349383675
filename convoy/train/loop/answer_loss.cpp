// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/answer_loss.h"

#include <ATen/ATen.h>

#include <vector>

#include "convoy/model/nn/head_loss.h"

namespace convoy::train {
namespace {

// The sum of each row, fp64. Row by row: so it does not depend on the other rows, nor on the number
// of threads.
at::Tensor row_sums(const at::Tensor& values_T, const std::vector<int64_t>& starts) {
  std::vector<at::Tensor> sums;
  for (size_t row = 0; row + 1 < starts.size(); ++row)
    sums.push_back(values_T.narrow(0, starts[row], starts[row + 1] - starts[row]).sum(at::kDouble));
  return at::stack(sums);
}

// A forward pass over a micro-batch, whose log-probabilities are known before the loss is.
class ScoredPass {
 public:
  ScoredPass(nn::CausalLm& model, const MicroBatch& micro_batch, const PassOptions& options)
      : model_(model),
        batch_(micro_batch.place.has_rows ? micro_batch.batch : idle_batch(model.device())),
        hidden_TD_(model.hidden_states(
            batch_.tokens, {.recompute = options.recompute,
                            .kept_inputs = options.keeps_inputs_on_host ? nn::KeptInputs::OnHost
                                                                        : nn::KeptInputs::OnDevice,
                            .draw_key = options.draw_key,
                            .noise_alpha = options.noise_alpha})),
        temperature_(options.temperature),
        nll_T_(
            nn::head_token_losses(model, hidden_TD_.detach(), batch_.labels, temperature_).nll_T) {}

  const at::Tensor& nll_T() const { return nll_T_; }
  const LabelledBatch& batch() const { return batch_; }

  // For a micro-batch without rows.
  MicroBatchLoss idle() const {
    return {.sum = nn::head_loss(model_, hidden_TD_, batch_.labels), .hits = {}, .figures = {}};
  }

  // The loss `found` with its gradients: `weights_N` are the factors of -log p of each labelled
  // token.
  MicroBatchLoss with_gradients(const AnswersLoss& found, const at::Tensor& weights_N) const {
    const at::Tensor weighed = nn::head_loss(
        model_, hidden_TD_, batch_.labels.weighted(weights_N.to(at::kFloat)), temperature_);
    // The gradients of `weighed`, with the value of the loss.
    return {
        .sum = weighed.to(at::kDouble) + (found.sum.detach() - weighed.detach().to(at::kDouble)),
        .hits = {},
        .figures = found.figures};
  }

 private:
  nn::CausalLm& model_;
  const LabelledBatch batch_;
  const at::Tensor hidden_TD_;
  const double temperature_;
  const at::Tensor nll_T_;
};

}  // namespace

// The head first computes the log-probabilities, the loss then gives the factor of each token in
// the gradient, and the head's loss with the factors as weights gives the gradients: so logits are
// never kept, whatever the loss. The tokens of an answer share one factor.
MicroBatchLoss loss_of_answers(
    nn::CausalLm& model, const MicroBatch& micro_batch, const PassOptions& options,
    const std::function<AnswersLoss(const at::Tensor& log_probability_R)>& loss) {
  const ScoredPass pass(model, micro_batch, options);
  if (!micro_batch.place.has_rows) return pass.idle();

  const std::vector<int64_t>& starts = pass.batch().tokens.rows().starts();
  const at::Tensor log_probability_R = row_sums(pass.nll_T(), starts).neg_().requires_grad_(true);
  const AnswersLoss found = loss(log_probability_R);
  found.sum.backward();

  const at::Tensor factors_R = log_probability_R.grad().neg();
  std::vector<at::Tensor> factors_T;
  for (size_t row = 0; row + 1 < starts.size(); ++row)
    factors_T.push_back(
        factors_R.narrow(0, static_cast<int64_t>(row), 1).expand({starts[row + 1] - starts[row]}));
  return pass.with_gradients(found,
                             at::cat(factors_T).index_select(0, pass.batch().labels.tokens_N()));
}

MicroBatchLoss loss_of_tokens(
    nn::CausalLm& model, const MicroBatch& micro_batch, const PassOptions& options,
    const std::function<AnswersLoss(const at::Tensor& log_probability_N)>& loss) {
  const ScoredPass pass(model, micro_batch, options);
  if (!micro_batch.place.has_rows) return pass.idle();
  const at::Tensor log_probability_N = pass.nll_T()
                                           .index_select(0, pass.batch().labels.tokens_N())
                                           .to(at::kDouble)
                                           .neg_()
                                           .requires_grad_(true);
  const AnswersLoss found = loss(log_probability_N);
  found.sum.backward();
  return pass.with_gradients(found, log_probability_N.grad().neg());
}

}  // namespace convoy::train
