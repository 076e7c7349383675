// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/ssm_descent.h"

#include <algorithm>
#include <cmath>

#include "convoy/farm/experiments/random/numbers.h"
#include "convoy/farm/experiments/ssm/descent_kernels.h"

namespace convoy::experiments {
namespace {

// Learning rate of `epoch`, counted from 0. The schedule "adaptive" scales it further by the
// gradient.
double scheduled_lr(const SsmDescent& descent, int64_t epoch) {
  const auto at = static_cast<double>(epoch);
  switch (descent.schedule()) {
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
      : problem_(problem),
        is_adam_(problem.parameters.descent.optimizer() == SsmOptimizer::Adam),
        is_adaptive_(problem.parameters.descent.schedule() == SsmSchedule::Adaptive),
        state_(std::move(weights), problem.num_powers) {}

  void update(const SsmEpoch& epoch) {
    measure();
    DescentStep step;
    // d loss / d a_j = sum over m of c_m m a_j^(m-1) with c = 2 / divisor * sum of (row . s) row.
    for (const auto& row : problem_.rows)
      for (uint32_t at = 0; at < problem_.num_powers; ++at)
        step.slope[at] += row_slope(row.data(), s_, problem_.divisor, at, problem_.num_powers);
    step.lr = epoch.lr;
    if (is_adaptive_) step.lr = adaptive_lr(epoch, gradient_norm(state_, step), mean_norm_);
    if (is_adam_) {
      step.lr /= epoch.first_correction;
      step.root_correction = epoch.root_correction;
      adam_step(state_, step);
    } else {
      sgd_step(state_, step);
    }
  }

  sweep::CellOutcome outcome(int64_t steps) {
    measure();
    return {problem_.generalisation_loss(s_), problem_.train_loss(s_), steps};
  }

 private:
  void measure() {
    sum_powers(state_, s_);
    for (uint32_t at = 0; at < problem_.num_powers; ++at) s_[at] -= problem_.target[at];
  }

  const SsmProblem& problem_;
  const bool is_adam_, is_adaptive_;
  DescentState state_;
  double s_[kMaxSsmPower] = {};
  double mean_norm_ = 0;
};

}  // namespace

std::vector<double> initial_weights(const SsmProblem& problem) {
  const SsmDescent& descent = problem.parameters.descent;
  std::vector<float> normals(problem.student_dim);
  fill_normals({problem.key, Stream::DescentInit, Precision::Exact, 0}, 0, normals);
  std::vector<double> weights(normals.begin(), normals.end());
  const SsmInit init = descent.init();
  const double centre = init == SsmInit::NearOne ? 1 : 0;
  for (double& weight : weights) {
    weight = centre + descent.init_scale * weight;
    if (init == SsmInit::PositiveDiagonal) weight = std::abs(weight);
  }
  if (init == SsmInit::DoubleMax) *std::max_element(weights.begin(), weights.end()) *= 5;
  return weights;
}

std::vector<SsmEpoch> ssm_epochs(const SsmDescent& descent) {
  std::vector<SsmEpoch> epochs(static_cast<size_t>((descent.epochs - 1) / 10 * 10));
  const bool is_adaptive = descent.schedule() == SsmSchedule::Adaptive;
  double first = 1, second = 1;
  for (size_t at = 0; at < epochs.size(); ++at) {
    epochs[at] = {.lr = scheduled_lr(descent, static_cast<int64_t>(at)),
                  .first_correction = 1 - (first *= kBeta1),
                  .root_correction = std::sqrt(1 - (second *= kBeta2))};
    if (is_adaptive)
      epochs[at].norm_correction = 1 - std::pow(kAdaptiveBeta, static_cast<double>(at + 1));
  }
  return epochs;
}

sweep::CellOutcome ssm_outcome(const SsmProblem& problem, const std::vector<double>& weights,
                               size_t steps) {
  return Run(problem, weights).outcome(static_cast<int64_t>(steps));
}

sweep::CellOutcome descend_ssm(const SsmProblem& problem, std::vector<double> weights) {
  Run run(problem, std::move(weights));
  const std::vector<SsmEpoch> epochs = ssm_epochs(problem.parameters.descent);
  for (const SsmEpoch& epoch : epochs) run.update(epoch);
  return run.outcome(static_cast<int64_t>(epochs.size()));
}

}  // namespace convoy::experiments
