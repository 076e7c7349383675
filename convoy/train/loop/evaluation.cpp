// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/evaluation.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

#include "convoy/core/base/error.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/model/nn/head_loss.h"
#include "convoy/train/loop/evaluation_turns.h"
#include "convoy/train/loop/labelled_batch.h"

namespace convoy::train {

double EvaluationFigures::perplexity() const { return std::exp(loss()); }

double EvaluationFigures::token_accuracy() const {
  return static_cast<double>(correct_tokens) /
         static_cast<double>(supervised_tokens > 0 ? supervised_tokens : 1);
}

namespace {

// A rank without rows joins the pass of the others if the pass is collective.
void attend_pass(nn::CausalLm& model) {
  if (model.residency() == nullptr || !model.residency()->is_collective()) return;
  const at::NoGradGuard no_grad;
  const LabelledBatch batch = idle_batch(model.device());
  nn::head_token_losses(model, model.hidden_states(batch.tokens, {}), batch.labels);
}

}  // namespace

std::vector<RowLoss> row_losses(nn::CausalLm& model, const data::TokenDataset& dataset,
                                const std::vector<int64_t>& rows) {
  const at::NoGradGuard no_grad;
  const LabelledBatch batch = assemble_batch(dataset, rows, model.device());
  const at::Tensor hidden_TD = model.hidden_states(batch.tokens, {});
  const kernels::TokenLosses losses = nn::head_token_losses(model, hidden_TD, batch.labels);
  const at::Tensor nll_T = losses.nll_T.cpu();
  const at::Tensor correct_T = losses.correct_T.cpu();
  const float* const nll = nll_T.const_data_ptr<float>();
  const bool* const correct = correct_T.const_data_ptr<bool>();
  std::vector<RowLoss> found(rows.size());
  for (size_t index = 0; index < rows.size(); ++index) {
    RowLoss& row = found[index];
    row.supervised_tokens = dataset.supervised_tokens(rows[index]);
    row.weight = dataset.loss_weight(rows[index]);
    const std::span<const float> weights = dataset.weights(rows[index]);
    // Summed in order: a sum over threads would depend on the number of threads.
    const std::vector<int64_t>& starts = batch.tokens.rows().starts();
    for (int64_t t = starts[index]; t < starts[index + 1]; ++t) {
      // The loss of a token is at the place of the token before it.
      const auto target = static_cast<size_t>(t - starts[index]) + 1;
      const bool is_weighed = target < weights.size();
      row.nll += is_weighed ? static_cast<double>(weights[target]) * nll[t] : nll[t];
      row.correct_tokens += correct[t] ? 1 : 0;
    }
  }
  return found;
}

std::optional<std::vector<RowLoss>> losses_of_rows(nn::CausalLm& model,
                                                   const data::TokenDataset& dataset,
                                                   const std::vector<int64_t>& rows,
                                                   int64_t batch_size, comm::Group& group,
                                                   const std::function<bool()>& stop_requested,
                                                   const std::function<void(int64_t)>& rows_done) {
  const int64_t num_rows = std::ssize(rows);
  std::vector<RowLoss> own;
  StopQuestion stop(group, stop_requested);
  // All ranks have the same number of turns, so that all ask the same questions; the last ranks may
  // have no rows in the last turn.
  for (int64_t turn = 0; turn < num_turns(num_rows, batch_size, group); ++turn) {
    std::vector<int64_t> of_turn = rows_of_turn(turn, batch_size, num_rows, group);
    for (int64_t& row : of_turn) row = rows[static_cast<size_t>(row)];
    if (of_turn.empty()) {
      attend_pass(model);
    } else {
      const std::vector<RowLoss> found = row_losses(model, dataset, of_turn);
      own.insert(own.end(), found.begin(), found.end());
      if (rows_done) rows_done(static_cast<int64_t>(own.size()));
    }
    if (stop.ask_after(turn)) return std::nullopt;
  }
  const std::vector<std::string> all = group.all_gather_bytes(
      std::string_view(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(RowLoss)));
  std::vector<RowLoss> losses(rows.size());
  for (int64_t row = 0; row < num_rows; ++row) {
    const std::string& theirs = all[static_cast<size_t>(row % group.size())];
    const size_t at = static_cast<size_t>(row / group.size()) * sizeof(RowLoss);
    CONVOY_INVARIANT(at + sizeof(RowLoss) <= theirs.size(), "row {} has no loss", row);
    std::memcpy(&losses[static_cast<size_t>(row)], theirs.data() + at, sizeof(RowLoss));
  }
  return losses;
}

std::optional<EvaluationFigures> evaluate_loss(nn::CausalLm& model,
                                               const data::TokenDataset& dataset,
                                               int64_t batch_size, comm::Group& group,
                                               const std::function<bool()>& stop_requested,
                                               const std::function<void(int64_t)>& rows_done) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<int64_t> rows(static_cast<size_t>(dataset.num_rows()));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  const auto losses =
      losses_of_rows(model, dataset, rows, batch_size, group, stop_requested, rows_done);
  if (!losses) return std::nullopt;
  EvaluationFigures figures{.rows = dataset.num_rows()};
  for (const RowLoss& loss : *losses) {
    figures.nll_sum += loss.nll;
    figures.weight += loss.weight;
    figures.supervised_tokens += loss.supervised_tokens;
    figures.correct_tokens += loss.correct_tokens;
  }
  figures.seconds = seconds_since(start);
  return figures;
}

}  // namespace convoy::train
