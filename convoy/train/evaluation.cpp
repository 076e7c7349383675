// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/evaluation.h"

#include <chrono>
#include <cmath>

#include "convoy/kernels/cross_entropy/linear_cross_entropy.h"
#include "convoy/train/token_batch.h"

namespace convoy::train {

double EvaluationFigures::perplexity() const { return std::exp(loss()); }

double EvaluationFigures::token_accuracy() const {
  return static_cast<double>(correct_tokens) /
         static_cast<double>(supervised_tokens > 0 ? supervised_tokens : 1);
}

EvaluationFigures evaluate_loss(nn::CausalLm& model, const data::TokenDataset& dataset,
                                int64_t batch_size, comm::Group& group,
                                const std::function<void(int64_t)>& row_done) {
  const auto start = std::chrono::steady_clock::now();
  const at::NoGradGuard no_grad;
  double nll_sum = 0;
  double tokens = 0;
  double correct = 0;
  std::vector<int64_t> rows;
  int64_t rows_done = 0;
  for (int64_t row = group.rank(); row < dataset.num_rows(); row += group.size()) {
    rows.push_back(row);
    const bool last = row + group.size() >= dataset.num_rows();
    if (static_cast<int64_t>(rows.size()) < batch_size && !last) continue;
    const LabelledBatch batch = assemble_batch(dataset, rows);
    const at::Tensor hidden_TD = model.hidden_states(batch.tokens, {});
    const auto losses =
        kernels::linear_token_losses(hidden_TD, model.head().weight(), batch.labels_T);
    nll_sum += losses.nll_T.sum(at::kDouble).item<double>();
    correct += losses.correct_T.sum().item<double>();
    tokens += static_cast<double>(batch.supervised_tokens);
    rows_done += static_cast<int64_t>(rows.size());
    if (row_done) row_done(rows_done);
    rows.clear();
  }
  // fp32 would round a sum of many thousands of nats: each rank's figures travel as bytes.
  const std::array<double, 3> own = {nll_sum, tokens, correct};
  std::array<double, 3> sums = {0, 0, 0};
  for (const std::string& bytes : group.all_gather_bytes(
           std::string_view(reinterpret_cast<const char*>(own.data()), sizeof(own)))) {
    std::array<double, 3> theirs;
    std::memcpy(theirs.data(), bytes.data(), sizeof(theirs));
    for (size_t figure = 0; figure < sums.size(); ++figure) sums[figure] += theirs[figure];
  }
  return {
      .nll_sum = sums[0],
      .supervised_tokens = static_cast<int64_t>(sums[1]),
      .correct_tokens = static_cast<int64_t>(sums[2]),
      .rows = dataset.num_rows(),
      .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

}  // namespace convoy::train
