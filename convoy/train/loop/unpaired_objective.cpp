// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/unpaired_objective.h"

#include <ATen/ATen.h>

#include <array>
#include <chrono>
#include <numeric>

#include "convoy/core/base/error.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/machine/device/transfer.h"
#include "convoy/train/loop/answer_loss.h"
#include "convoy/train/loop/evaluation.h"
#include "convoy/train/loop/mismatched_rows.h"

namespace convoy::train {
namespace {

// The figures of a step, which have TRL's names: sums over good and bad answers, and their numbers.
enum JudgedFigure {
  GoodReward,
  BadReward,
  GoodLogProbability,
  BadLogProbability,
  NumGood,
  NumBad,
  LossOfAll,
  DivergenceOfRows,
  NumJudgedFigures
};

at::Tensor judged_figures(const objectives::JudgedLosses& losses,
                          const objectives::JudgedScores& scores, double divergence) {
  const at::Tensor good_R = scores.is_good_R.to(at::kDouble);
  const at::Tensor bad_R = 1 - good_R;
  const at::Tensor log_probability_R = scores.log_probability_R.detach();
  std::array<at::Tensor, NumJudgedFigures> sums;
  sums[GoodReward] = (losses.reward_R * good_R).sum();
  sums[BadReward] = (losses.reward_R * bad_R).sum();
  sums[GoodLogProbability] = (log_probability_R * good_R).sum();
  sums[BadLogProbability] = (log_probability_R * bad_R).sum();
  sums[NumGood] = good_R.sum();
  sums[NumBad] = bad_R.sum();
  sums[LossOfAll] = losses.loss_R.detach().sum();
  sums[DivergenceOfRows] =
      at::zeros_like(sums[NumGood]) + divergence * static_cast<double>(good_R.size(0));
  return at::stack(sums);
}

// A step without one kind of answer has no figure of it.
std::map<std::string, double> named_judged_figures(const std::vector<double>& sums,
                                                   bool has_divergence) {
  const double good = sums[NumGood];
  const double bad = sums[NumBad];
  std::map<std::string, double> named;
  if (has_divergence) named["kl"] = sums[DivergenceOfRows] / std::max(1.0, good + bad);
  if (good > 0) {
    named["rewards/chosen"] = sums[GoodReward] / good;
    named["logps/chosen"] = sums[GoodLogProbability] / good;
  }
  if (bad > 0) {
    named["rewards/rejected"] = sums[BadReward] / bad;
    named["logps/rejected"] = sums[BadLogProbability] / bad;
  }
  if (good > 0 && bad > 0)
    named["rewards/margins"] = named["rewards/chosen"] - named["rewards/rejected"];
  return named;
}

std::vector<int64_t> numbers_below(int64_t end) {
  std::vector<int64_t> numbers(static_cast<size_t>(end));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return numbers;
}

}  // namespace

UnpairedObjective::UnpairedObjective(nn::CausalLm& model, const data::BatchPlan& plan,
                                     const data::TokenDataset& validation, UnpairedOptions options,
                                     ReferenceScores reference, comm::Group& group)
    : TextObjective(model, plan, validation),
      options_(std::move(options)),
      reference_(std::move(reference)),
      group_(group) {
  CONVOY_INVARIANT(std::ssize(reference_.train) == plan.dataset().num_rows() &&
                       std::ssize(reference_.validation) == validation.num_rows() &&
                       std::ssize(reference_.mismatched_validation) ==
                           (options_.estimates_divergence ? validation.num_rows() : 0),
                   "{} and {} scores of the reference", reference_.train.size(),
                   reference_.validation.size());
}

MicroBatchPosition UnpairedObjective::take() {
  batch_ = take_batch();
  batch_->place.step.weight = static_cast<double>(batch_->place.step.rows);
  const data::StepPosition position = batch_->place.position;
  if (options_.estimates_divergence && batch_->place.number == 0)
    divergence_ = *divergence(plan_.dataset(), plan_.rows(position), mismatched_of(position.epoch),
                              group_, {});
  return batch_->place;
}

const std::vector<double>& UnpairedObjective::mismatched_of(int64_t epoch) {
  if (epoch != mismatched_epoch_) {
    mismatched_ = {};  // never two epochs at a time
    mismatched_ = reference_.mismatched_of_epoch(epoch);
    mismatched_epoch_ = epoch;
  }
  return mismatched_;
}

// Collective. Nothing is kept for backward. None when the run was stopped.
std::optional<double> UnpairedObjective::divergence(
    const data::TokenDataset& dataset, const std::vector<int64_t>& rows,
    const std::vector<double>& reference, comm::Group& group,
    const std::function<bool()>& stop_requested) const {
  const std::vector<Mismatch> mismatches = mismatches_of(rows);
  const data::TokenDataset made = mismatched_rows(dataset, mismatches, options_.most_tokens);
  const auto losses = losses_of_rows(model_, made, numbers_below(made.num_rows()),
                                     options_.eval_batch_size, group, stop_requested);
  if (!losses) return std::nullopt;
  double sum = 0;
  for (size_t at = 0; at < mismatches.size(); ++at)
    sum += -(*losses)[at].nll - reference[static_cast<size_t>(mismatches[at].prompt)];
  return objectives::divergence_estimate(sum, std::ssize(mismatches));
}

objectives::JudgedScores UnpairedObjective::scores_of(const data::TokenDataset& dataset,
                                                      const std::vector<int64_t>& rows,
                                                      const at::Tensor& log_probability_R,
                                                      const std::vector<double>& reference) const {
  std::vector<double> good;
  std::vector<double> of_reference;
  for (const int64_t row : rows) {
    good.push_back(dataset.is_desirable(row) ? 1 : 0);
    of_reference.push_back(reference[static_cast<size_t>(row)]);
  }
  const at::Device device = log_probability_R.device();
  return {.log_probability_R = log_probability_R,
          .reference_R = device::to_device<double>(of_reference, device),
          .is_good_R = device::to_device<double>(good, device).to(at::kBool)};
}

MicroBatchLoss UnpairedObjective::loss(const PassOptions& options) {
  return loss_of_answers(model_, *batch_, options, [this](const at::Tensor& log_probability_R) {
    const objectives::JudgedScores scores =
        scores_of(plan_.dataset(), batch_->rows, log_probability_R, reference_.train);
    const objectives::JudgedLosses losses =
        objectives::judged_losses(options_.preference, scores, divergence_);
    return AnswersLoss{.sum = losses.loss_R.sum(),
                       .figures = judged_figures(losses, scores, divergence_)};
  });
}

int64_t UnpairedObjective::num_figures() const { return NumJudgedFigures; }

std::map<std::string, double> UnpairedObjective::step_figures(
    const std::vector<double>& sums) const {
  return named_judged_figures(sums, options_.estimates_divergence);
}

// The divergence is one estimate over all rows, so the batches of an evaluation do not change it.
std::optional<Evaluation> UnpairedObjective::evaluate(comm::Group& group,
                                                      const std::function<bool()>& stop_requested) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<int64_t> rows = numbers_below(validation_.num_rows());
  const auto found =
      losses_of_rows(model_, validation_, rows, options_.eval_batch_size, group, stop_requested);
  if (!found) return std::nullopt;
  std::optional<double> estimate = 0.0;
  if (options_.estimates_divergence)
    estimate =
        divergence(validation_, rows, reference_.mismatched_validation, group, stop_requested);
  if (!estimate) return std::nullopt;
  std::vector<double> log_probability;
  Evaluation evaluation{.rows = validation_.num_rows()};
  evaluation.batches = (evaluation.rows + options_.eval_batch_size - 1) / options_.eval_batch_size;
  for (const RowLoss& loss : *found) {
    log_probability.push_back(-loss.nll);
    evaluation.supervised_tokens += loss.supervised_tokens;
  }
  const at::NoGradGuard no_grad;
  const objectives::JudgedScores scores =
      scores_of(validation_, rows, at::tensor(log_probability, at::kDouble), reference_.validation);
  const objectives::JudgedLosses losses =
      objectives::judged_losses(options_.preference, scores, *estimate);
  const at::Tensor sums_F = judged_figures(losses, scores, *estimate);
  const double* const sums = sums_F.const_data_ptr<double>();
  evaluation.others =
      named_judged_figures({sums, sums + NumJudgedFigures}, options_.estimates_divergence);
  evaluation.loss = sums[LossOfAll] / static_cast<double>(evaluation.rows);
  evaluation.seconds = seconds_since(start);
  return evaluation;
}

}  // namespace convoy::train
