// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/ssm_workload.h"

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/cuda/cuda_descents.h"
#include "convoy/farm/experiments/cuda/cuda_guesses.h"
#include "convoy/farm/experiments/ssm/ssm_descent.h"
#include "convoy/farm/experiments/ssm/ssm_guesses.h"
#include "convoy/farm/experiments/ssm/ssm_problem.h"
#include "convoy/farm/experiments/ssm/ssm_shortcuts.h"
#include "convoy/farm/experiments/ssm/ssm_theory.h"

namespace convoy::experiments {
namespace {

// Increased by every change that alters the numbers of a cell.
constexpr int kGuessNumbersVersion = 2;

SsmProblem problem_of(const sweep::Cell& cell) {
  return draw_problem(SsmParameters::parse(cell.parameters), cell.seed);
}

}  // namespace

SsmWorkload::SsmWorkload(Precision precision, CpuLevel level, std::shared_ptr<cuda::Device> gpu)
    : precision_(precision), level_(level), gpu_(std::move(gpu)) {
  CONVOY_INVARIANT(level <= best_cpu_level(), "this machine cannot run {}", cpu_level_name(level));
}

std::string SsmWorkload::version() const {
  return fmt::format("{}-{}-layout{}", kGuessNumbersVersion,
                     precision_ == Precision::Exact ? "exact" : "fast", kRandomLayout);
}

std::unique_ptr<sweep::GuessExperiment> SsmWorkload::guesses(const sweep::Cell& cell) const {
  const SsmProblem problem = problem_of(cell);
  // A shortcut draws one or two numbers per guess, so a GPU would not be faster.
  if (problem.parameters.shortcut() != SsmShortcut::None)
    return shortcut_experiment(problem, precision_, level_);
  if (gpu_) return cuda::guess_experiment(problem, precision_, gpu_);
  return guess_experiment(problem, precision_, level_);
}

std::vector<sweep::CellOutcome> SsmWorkload::compute(const std::vector<sweep::Cell>& cells) const {
  std::vector<SsmProblem> problems;
  for (const sweep::Cell& cell : cells) problems.push_back(problem_of(cell));
  if (gpu_) return cuda::descend_ssm(problems, gpu_);
  std::vector<sweep::CellOutcome> outcomes;
  for (const SsmProblem& problem : problems)
    outcomes.push_back(descend_ssm(problem, initial_weights(problem)));
  return outcomes;
}

sweep::ReferenceCurve SsmWorkload::reference(const sweep::Cell& cell) const {
  return ssm_theory(problem_of(cell));
}

}  // namespace convoy::experiments
