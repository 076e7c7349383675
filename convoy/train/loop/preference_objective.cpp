// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/preference_objective.h"

#include <ATen/ATen.h>

#include <array>
#include <chrono>
#include <numeric>

#include "convoy/core/base/error.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/machine/device/transfer.h"
#include "convoy/train/loop/answer_loss.h"

namespace convoy::train {
namespace {

constexpr int64_t kRowsOfPair = 2;

// The figures of a step, which have TRL's names: sums over pairs, then the number of pairs.
enum Figure {
  ChosenReward,
  RejectedReward,
  Accuracy,
  ChosenLogProbability,
  RejectedLogProbability,
  SftLoss,
  WholeLoss,
  NumPairs,
  NumFigures
};

at::Tensor pair_figures(const objectives::PairLosses& losses,
                        const objectives::CompletionScores& chosen,
                        const objectives::CompletionScores& rejected) {
  const at::Tensor right_P = losses.chosen_reward_P.gt(losses.rejected_reward_P).to(at::kDouble);
  const at::Tensor none = at::zeros({}, right_P.options());
  std::array<at::Tensor, NumFigures> sums;
  sums[ChosenReward] = losses.chosen_reward_P.sum();
  sums[RejectedReward] = losses.rejected_reward_P.sum();
  sums[Accuracy] = right_P.sum();
  sums[ChosenLogProbability] = chosen.log_probability_P.detach().sum();
  sums[RejectedLogProbability] = rejected.log_probability_P.detach().sum();
  sums[SftLoss] = losses.sft_P.defined() ? losses.sft_P.sum() : none;
  sums[WholeLoss] = losses.loss_P.detach().sum();
  sums[NumPairs] = none + static_cast<double>(right_P.size(0));
  return at::stack(sums);
}

std::map<std::string, double> named_figures(const std::vector<double>& sums) {
  const double pairs = std::max(1.0, sums[NumPairs]);
  const auto mean = [&](Figure figure) { return sums[figure] / pairs; };
  std::map<std::string, double> named = {
      {"rewards/chosen", mean(ChosenReward)},
      {"rewards/rejected", mean(RejectedReward)},
      {"rewards/margins", mean(ChosenReward) - mean(RejectedReward)},
      {"rewards/accuracies", mean(Accuracy)},
      {"logps/chosen", mean(ChosenLogProbability)},
      {"logps/rejected", mean(RejectedLogProbability)}};
  if (sums[SftLoss] != 0) {
    named["loss/sft"] = mean(SftLoss);
    named["loss/preference"] = mean(WholeLoss) - mean(SftLoss);
  }
  return named;
}

}  // namespace

PreferenceObjective::PreferenceObjective(nn::CausalLm& model, const data::BatchPlan& plan,
                                         const data::TokenDataset& validation,
                                         int64_t eval_batch_size, objectives::PairObjective loss,
                                         ReferenceScores reference)
    : TextObjective(model, plan, validation),
      eval_batch_size_(eval_batch_size),
      loss_(std::move(loss)),
      reference_(std::move(reference)) {
  CONVOY_INVARIANT(plan.config().rows_of_item == kRowsOfPair, "the plan deals {} rows together",
                   plan.config().rows_of_item);
  const auto fits = [&](const std::vector<double>& scores, const data::TokenDataset& rows) {
    return std::ssize(scores) == (loss_.has_reference() ? rows.num_rows() : 0);
  };
  CONVOY_INVARIANT(
      fits(reference_.train, plan.dataset()) && fits(reference_.validation, validation),
      "{} and {} scores of the reference", reference_.train.size(), reference_.validation.size());
}

MicroBatchPosition PreferenceObjective::take() {
  batch_ = take_batch();
  batch_->place.step.rows /= kRowsOfPair;
  batch_->place.step.weight = static_cast<double>(batch_->place.step.rows);
  return batch_->place;
}

PreferenceObjective::Sides PreferenceObjective::sides_of(
    const data::TokenDataset& dataset, const std::vector<int64_t>& rows,
    const at::Tensor& log_probability_R, const std::vector<double>& reference) const {
  const at::Device device = log_probability_R.device();
  std::array<objectives::CompletionScores, kRowsOfPair> sides;
  for (size_t side = 0; side < sides.size(); ++side) {
    std::vector<double> tokens;
    std::vector<double> of_reference;
    for (size_t at = side; at < rows.size(); at += kRowsOfPair) {
      tokens.push_back(static_cast<double>(dataset.supervised_tokens(rows[at])));
      if (loss_.has_reference()) of_reference.push_back(reference[static_cast<size_t>(rows[at])]);
    }
    sides[side].log_probability_P =
        log_probability_R.slice(0, static_cast<int64_t>(side), std::nullopt, kRowsOfPair);
    sides[side].tokens_P = device::to_device<double>(tokens, device);
    if (loss_.has_reference())
      sides[side].reference_P = device::to_device<double>(of_reference, device);
  }
  return {std::move(sides[0]), std::move(sides[1])};
}

MicroBatchLoss PreferenceObjective::loss(const PassOptions& options) {
  return loss_of_answers(model_, *batch_, options, [this](const at::Tensor& log_probability_R) {
    const Sides sides =
        sides_of(plan_.dataset(), batch_->rows, log_probability_R, reference_.train);
    const objectives::PairLosses losses = loss_.losses(sides.chosen, sides.rejected);
    return AnswersLoss{.sum = losses.loss_P.sum(),
                       .figures = pair_figures(losses, sides.chosen, sides.rejected)};
  });
}

int64_t PreferenceObjective::num_figures() const { return NumFigures; }

std::map<std::string, double> PreferenceObjective::step_figures(
    const std::vector<double>& sums) const {
  return named_figures(sums);
}

std::optional<Evaluation> PreferenceObjective::evaluate(
    comm::Group& group, const std::function<bool()>& stop_requested) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<int64_t> rows(static_cast<size_t>(validation_.num_rows()));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  const auto found = losses_of_rows(model_, validation_, rows, kRowsOfPair * eval_batch_size_,
                                    group, stop_requested);
  if (!found) return std::nullopt;
  at::Tensor log_probability_R = at::empty({validation_.num_rows()}, at::kDouble);
  double* const log_probability = log_probability_R.mutable_data_ptr<double>();
  Evaluation evaluation{.rows = validation_.num_rows() / kRowsOfPair};
  evaluation.batches = (evaluation.rows + eval_batch_size_ - 1) / eval_batch_size_;
  int64_t chosen_tokens = 0;
  int64_t chosen_right = 0;
  for (size_t row = 0; row < rows.size(); ++row) {
    const RowLoss& loss = (*found)[row];
    log_probability[row] = -loss.nll;
    evaluation.supervised_tokens += loss.supervised_tokens;
    if (row % kRowsOfPair != 0) continue;
    chosen_tokens += loss.supervised_tokens;
    chosen_right += loss.correct_tokens;
  }
  const at::NoGradGuard no_grad;
  const Sides sides = sides_of(validation_, rows, log_probability_R, reference_.validation);
  const objectives::PairLosses losses = loss_.losses(sides.chosen, sides.rejected);
  const at::Tensor sums_F = pair_figures(losses, sides.chosen, sides.rejected);
  const double* const sums = sums_F.const_data_ptr<double>();
  evaluation.others = named_figures({sums, sums + NumFigures});
  evaluation.others["accuracy"] = evaluation.others["rewards/accuracies"];
  evaluation.others["mean_token_accuracy"] =
      static_cast<double>(chosen_right) / static_cast<double>(std::max<int64_t>(1, chosen_tokens));
  evaluation.loss = sums[WholeLoss] / sums[NumPairs];
  evaluation.seconds = seconds_since(start);
  return evaluation;
}

}  // namespace convoy::train
