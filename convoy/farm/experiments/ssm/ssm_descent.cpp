// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/ssm_descent.h"

#include <algorithm>
#include <cmath>

#include "convoy/farm/experiments/random/numbers.h"
#include "convoy/farm/experiments/ssm/descent_kernels.h"

namespace convoy::experiments {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kAdamEpsilon = 1e-8;
constexpr double kAdaptiveBeta = 0.8, kAdaptiveEpsilon = 1e-6;

// Learning rate of `epoch`, from 0; Adaptive scales it further by the gradient.
double scheduled_lr(const SsmDescent& descent, int64_t epoch) {
  const auto at = static_cast<double>(epoch);
  switch (descent.schedule) {
    case SsmSchedule::Step:
      return descent.lr *
             std::pow(descent.step_gamma, static_cast<double>(epoch / descent.step_size));
    case SsmSchedule::Exponential:
      return descent.lr * std::pow(descent.exp_gamma, at);
    case SsmSchedule::Cosine:
      return descent.cosine_eta_min +
             (descent.lr - descent.cosine_eta_min) *
                 (1 + std::cos(M_PI * at / static_cast<double>(descent.epochs))) / 2;
    case SsmSchedule::None:
    case SsmSchedule::Adaptive:
      break;
  }
  return descent.lr;
}

class Run {
 public:
  Run(const SsmProblem& problem, std::vector<double> weights)
      : problem_(problem), state_(std::move(weights), problem.num_powers) {}

  void update(int64_t epoch) {
    const SsmDescent& descent = problem_.parameters.descent;
    measure();
    DescentStep step;
    // d loss / d a_j = sum over m of c_m m a_j^(m-1), c = 2 / divisor * sum of (row . s) row.
    for (const auto& row : problem_.rows) {
      double dot = 0;
      for (uint32_t at = 0; at < problem_.num_powers; ++at) dot += row[at] * s_[at];
      for (uint32_t at = 0; at < problem_.num_powers; ++at)
        step.slope[at] += 2 / problem_.divisor * dot * row[at] * (at + 1);
    }
    step.lr = scheduled_lr(descent, epoch);
    if (descent.schedule == SsmSchedule::Adaptive) step.lr = adaptive_lr(step, epoch);
    if (descent.optimizer == SsmOptimizer::Adam) {
      root_correction_ *= kBeta2;
      correction_ *= kBeta1;
      step.lr /= 1 - correction_;
      step.root_correction = std::sqrt(1 - root_correction_);
      adam_step(state_, step, {kBeta1, kBeta2, kAdamEpsilon});
    } else {
      sgd_step(state_, step);
    }
  }

  sweep::DescentOutcome outcome(int64_t steps) {
    measure();
    return {problem_.generalisation_loss(s_), problem_.train_loss(s_), steps};
  }

 private:
  void measure() {
    sum_powers(state_, s_);
    for (uint32_t at = 0; at < problem_.num_powers; ++at) s_[at] -= problem_.target[at];
  }

  double adaptive_lr(const DescentStep& step, int64_t epoch) {
    mean_norm_ = kAdaptiveBeta * mean_norm_ + (1 - kAdaptiveBeta) * gradient_norm(state_, step);
    const double unbiased =
        mean_norm_ / (1 - std::pow(kAdaptiveBeta, static_cast<double>(epoch + 1)));
    return step.lr / (std::sqrt(unbiased) + kAdaptiveEpsilon);
  }

  const SsmProblem& problem_;
  DescentState state_;
  double s_[kMaxSsmPower] = {};
  double correction_ = 1, root_correction_ = 1;
  double mean_norm_ = 0;
};

}  // namespace

std::vector<double> initial_weights(const SsmProblem& problem) {
  const SsmDescent& descent = problem.parameters.descent;
  std::vector<float> normals(problem.student_dim);
  fill_normals({problem.key, Stream::DescentInit, Precision::Exact, 0}, 0, normals);
  std::vector<double> weights(normals.begin(), normals.end());
  const double centre = descent.init == SsmInit::NearOne ? 1 : 0;
  for (double& weight : weights) {
    weight = centre + descent.init_scale * weight;
    if (descent.init == SsmInit::PositiveDiagonal) weight = std::abs(weight);
  }
  if (descent.init == SsmInit::DoubleMax) *std::max_element(weights.begin(), weights.end()) *= 5;
  return weights;
}

sweep::DescentOutcome descend_ssm(const SsmProblem& problem, std::vector<double> weights) {
  Run run(problem, std::move(weights));
  const int64_t steps = (problem.parameters.descent.epochs - 1) / 10 * 10;
  for (int64_t epoch = 0; epoch < steps; ++epoch) run.update(epoch);
  return run.outcome(steps);
}

}  // namespace convoy::experiments
