// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/ssm_theory.h"

#include <algorithm>
#include <cmath>

namespace convoy::experiments {
namespace {

double normal_moment(uint32_t m) {
  if (m % 2 == 1) return 0;
  double product = 1;
  for (uint32_t factor = 1; factor < m; factor += 2) product *= factor;
  return product;
}

struct Gaussian {
  std::vector<double> mean;
  std::vector<std::vector<double>> covariance;
  std::vector<double> prior_variance;

  double mean_square() const {
    double sum = 0;
    for (size_t at = 0; at < mean.size(); ++at) sum += mean[at] * mean[at] + covariance[at][at];
    return sum;
  }

  // Conditions the distribution on row . S = 0. A row that earlier rows imply changes nothing.
  void condition(const std::vector<double>& row) {
    const size_t size = mean.size();
    std::vector<double> product(size, 0.0);
    double dot = 0, variance = 0, scale = 0;
    for (size_t m = 0; m < size; ++m) {
      for (size_t n = 0; n < size; ++n) product[m] += covariance[m][n] * row[n];
      scale += row[m] * row[m] * prior_variance[m];
      dot += row[m] * mean[m];
      variance += row[m] * product[m];
    }
    if (!(variance > 1e-12 * scale)) return;
    for (size_t m = 0; m < size; ++m) {
      mean[m] -= product[m] * dot / variance;
      for (size_t n = 0; n < size; ++n) covariance[m][n] -= product[m] * product[n] / variance;
    }
  }
};

Gaussian prior(const SsmProblem& problem) {
  const double d = problem.student_dim;
  Gaussian gaussian;
  for (uint32_t m = 1; m <= problem.num_powers; ++m) {
    gaussian.mean.push_back(d * std::pow(problem.prior_sd, m) * normal_moment(m) -
                            problem.target[m - 1]);
    auto& row = gaussian.covariance.emplace_back();
    for (uint32_t n = 1; n <= problem.num_powers; ++n)
      row.push_back(d * std::pow(problem.prior_sd, m + n) *
                    (normal_moment(m + n) - normal_moment(m) * normal_moment(n)));
  }
  for (uint32_t m = 0; m < problem.num_powers; ++m)
    gaussian.prior_variance.push_back(gaussian.covariance[m][m]);
  return gaussian;
}

// The loss for d -> infinity with prior N(0, 1/d) and a teacher of rank 1.
double asymptote(const SsmProblem& problem) {
  const double alpha = problem.alpha;
  std::vector<double> mean;
  double square = 0;
  for (uint32_t m = 1; m <= problem.num_powers; ++m) {
    mean.push_back((m == 2 ? 1 : 0) - std::pow(alpha, m));
    square += mean.back() * mean.back();
  }
  double weighted = 0, weight = 0;
  for (const auto& w : problem.w) {
    double dot = 0;
    for (size_t at = 0; at < mean.size(); ++at) dot += w[at] * mean[at];
    weighted += w[0] * dot;
    weight += w[0] * w[0];
  }
  // If no sequence has power 1, this is 0 / 0 = NaN.
  const double r = weighted / weight;
  return square - alpha * alpha + (r + alpha) * (r + alpha);
}

// The share of guesses that pass; NaN unless the training loss is a multiple of s_1^2. It is exact,
// because S_1 is normal.
double acceptance(const SsmProblem& problem) {
  double weight = 0;
  for (const auto& row : problem.rows) {
    for (size_t at = 1; at < row.size(); ++at)
      if (row[at] != 0) return std::nan("");
    weight += row[0] * row[0];
  }
  if (weight == 0) return 1;
  const double spread = problem.prior_sd * std::sqrt(static_cast<double>(problem.student_dim));
  const double bound = std::sqrt(problem.parameters.eps_train * problem.divisor / weight);
  const double centre = std::abs(problem.target[0]);
  const auto beyond = [&](double x) { return 0.5 * std::erfc(x / spread / std::sqrt(2.0)); };
  return beyond(centre - bound) - beyond(centre + bound);
}

}  // namespace

sweep::ReferenceCurve ssm_theory(const SsmProblem& problem) {
  sweep::ReferenceCurve theory;
  Gaussian gaussian = prior(problem);
  theory.prior_mean = gaussian.mean_square();
  for (const auto& row : problem.rows) gaussian.condition(row);
  // The value is 0 except for rounding errors if the rows determine all of S.
  theory.curve = std::max(0.0, gaussian.mean_square());
  if (problem.parameters.teacher_rank == 1 && problem.parameters.prior_sd.is_auto())
    theory.asymptote = asymptote(problem);
  theory.acceptance = acceptance(problem);
  return theory;
}

}  // namespace convoy::experiments
