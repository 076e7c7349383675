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

namespace {

// Asks all ranks now and then whether any was told to stop. The number of turns between two questions doubles until they
// take about half a second: ranks with long and short batches then seldom wait for each other.
class StopQuestion {
 public:
  StopQuestion(comm::Group& group, const std::function<bool()>& stop_requested)
      : group_(group), stop_requested_(stop_requested) {}

  // Collective. Called by every rank after each of its turns. True on all ranks or on none.
  bool ask_after(int64_t turn) {
    if (!stop_requested_ || turn + 1 < next_) return false;
    const Clock::time_point now = Clock::now();
    const bool quick = now - asked_ < std::chrono::milliseconds(500);
    const at::Tensor votes = at::zeros({2}, at::kLong);
    int64_t* const vote = votes.mutable_data_ptr<int64_t>();
    vote[0] = stop_requested_() ? 1 : 0;
    vote[1] = quick ? 1 : 0;
    group_.all_reduce_sum(votes);
    if (vote[1] == group_.size()) interval_ *= 2;
    next_ += interval_;
    asked_ = now;
    return vote[0] > 0;
  }

 private:
  using Clock = std::chrono::steady_clock;

  comm::Group& group_;
  const std::function<bool()>& stop_requested_;
  int64_t interval_ = 1;  // turns
  int64_t next_ = 1;
  Clock::time_point asked_ = Clock::now();
};

// The rows of one rank's batch; fewer or none at the end.
std::vector<int64_t> rows_of_turn(int64_t turn, int64_t batch_size, int64_t num_rows,
                                  const comm::Group& group) {
  std::vector<int64_t> rows;
  for (int64_t index = turn * batch_size; index < (turn + 1) * batch_size; ++index)
    if (const int64_t row = group.rank() + index * group.size(); row < num_rows)
      rows.push_back(row);
  return rows;
}

}  // namespace

std::optional<EvaluationFigures> evaluate_loss(nn::CausalLm& model,
                                               const data::TokenDataset& dataset,
                                               int64_t batch_size, comm::Group& group,
                                               const std::function<bool()>& stop_requested) {
  const auto start = std::chrono::steady_clock::now();
  const at::NoGradGuard no_grad;
  double nll_sum = 0;
  double tokens = 0;
  double correct = 0;
  StopQuestion stop(group, stop_requested);
  // As many turns on every rank, though the last ones have no rows for the last turn: all answer the same questions.
  for (int64_t turn = 0; turn * batch_size * group.size() < dataset.num_rows(); ++turn) {
    const std::vector<int64_t> rows = rows_of_turn(turn, batch_size, dataset.num_rows(), group);
    if (!rows.empty()) {
      const LabelledBatch batch = assemble_batch(dataset, rows);
      const at::Tensor hidden_TD = model.hidden_states(batch.tokens, {});
      const auto losses =
          kernels::linear_token_losses(hidden_TD, model.head().weight(), batch.labels_T);
      nll_sum += losses.nll_T.sum(at::kDouble).item<double>();
      correct += losses.correct_T.sum().item<double>();
      tokens += static_cast<double>(batch.supervised_tokens);
    }
    if (stop.ask_after(turn)) return std::nullopt;
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
  return EvaluationFigures{
      .nll_sum = sums[0],
      .supervised_tokens = static_cast<int64_t>(sums[1]),
      .correct_tokens = static_cast<int64_t>(sums[2]),
      .rows = dataset.num_rows(),
      .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

}  // namespace convoy::train
