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

}  // namespace

// The gradient of a loss with respect to a token's log-probability is one factor for all tokens of
// a row. The head first computes the log-probabilities, the loss then gives the factors, and the
// head's loss with the factors as weights gives the gradients: so logits are never kept, whatever
// the loss.
MicroBatchLoss loss_of_answers(
    nn::CausalLm& model, const MicroBatch& micro_batch, const PassOptions& options,
    const std::function<AnswersLoss(const at::Tensor& log_probability_R)>& loss) {
  const bool has_rows = micro_batch.place.has_rows;
  const LabelledBatch batch = has_rows ? micro_batch.batch : idle_batch(model.device());
  const at::Tensor hidden_TD = model.hidden_states(
      batch.tokens, {.recompute = options.recompute,
                     .kept_inputs = options.keeps_inputs_on_host ? nn::KeptInputs::OnHost
                                                                 : nn::KeptInputs::OnDevice,
                     .draw_key = options.draw_key,
                     .noise_alpha = options.noise_alpha});
  const at::Tensor nll_T = nn::head_token_losses(model, hidden_TD.detach(), batch.labels).nll_T;
  if (!has_rows)
    return {.sum = nn::head_loss(model, hidden_TD, batch.labels), .hits = {}, .figures = {}};

  const std::vector<int64_t>& starts = batch.tokens.rows().starts();
  const at::Tensor log_probability_R = row_sums(nll_T, starts).neg_().requires_grad_(true);
  const AnswersLoss found = loss(log_probability_R);
  found.sum.backward();

  const at::Tensor factors_R = log_probability_R.grad().neg();  // factors for -log p
  std::vector<at::Tensor> factors_T;
  for (size_t row = 0; row + 1 < starts.size(); ++row)
    factors_T.push_back(
        factors_R.narrow(0, static_cast<int64_t>(row), 1).expand({starts[row + 1] - starts[row]}));
  at::Tensor weights_N = at::cat(factors_T).index_select(0, batch.labels.tokens_N()).to(at::kFloat);
  const at::Tensor weighed =
      nn::head_loss(model, hidden_TD, batch.labels.weighted(std::move(weights_N)));
  // The gradients of `weighed`, with the value of the loss.
  return {.sum = weighed.to(at::kDouble) + (found.sum.detach() - weighed.detach().to(at::kDouble)),
          .hits = {},
          .figures = found.figures};
}

}  // namespace convoy::train
