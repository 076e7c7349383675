// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/mf/mf_workload.h"

#include <cmath>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/cuda/cuda_descents.h"
#include "convoy/farm/experiments/cuda/cuda_factors.h"
#include "convoy/farm/experiments/mf/mf_descent.h"
#include "convoy/farm/experiments/mf/mf_guesses.h"
#include "convoy/farm/experiments/mf/mf_theory.h"

namespace convoy::experiments {
namespace {

// Increased by every change that alters the numbers of a cell.
constexpr int kFactorNumbersVersion = 1;

MfProblem problem_of(const sweep::Cell& cell) {
  return draw_mf_problem(MfParameters::parse(cell.parameters), cell.seed);
}

}  // namespace

MfWorkload::MfWorkload(Precision precision, CpuLevel level, std::shared_ptr<cuda::Device> gpu)
    : precision_(precision), level_(level), gpu_(std::move(gpu)) {
  CONVOY_INVARIANT(level <= best_cpu_level(), "this machine cannot run {}", cpu_level_name(level));
}

std::string MfWorkload::version() const {
  return fmt::format("{}-{}-layout{}", kFactorNumbersVersion,
                     precision_ == Precision::Exact ? "exact" : "fast", kRandomLayout);
}

std::unique_ptr<sweep::GuessExperiment> MfWorkload::guesses(const sweep::Cell& cell) const {
  const MfCheck check = cell.method == "prior" ? MfCheck::Nothing : MfCheck::TrainLoss;
  const MfProblem problem = problem_of(cell);
  if (gpu_ && problem.parameters.shortcut() == MfShortcut::None)
    return cuda::mf_guess_experiment(problem, check, precision_, gpu_);
  return mf_guess_experiment(problem, check, precision_, level_);
}

std::vector<sweep::CellOutcome> MfWorkload::compute(const std::vector<sweep::Cell>& cells) const {
  std::vector<MfProblem> problems;
  std::vector<MfWeights> initial;
  for (const sweep::Cell& cell : cells) {
    problems.push_back(problem_of(cell));
    initial.push_back(mf_initial_weights(problems.back()));
  }
  if (!gpu_) return descend_mf(problems, initial);
  std::vector<sweep::CellOutcome> outcomes =
      descend_mf(problems, initial, cuda::mf_descend_on(gpu_));
  for (sweep::CellOutcome& outcome : outcomes) outcome.gpu = gpu_->name();
  return outcomes;
}

sweep::ReferenceCurve MfWorkload::reference(const sweep::Cell& cell) const {
  return {.prior_mean = cell.method == "gnc" ? mf_prior_mean(problem_of(cell)) : std::nan("")};
}

}  // namespace convoy::experiments
