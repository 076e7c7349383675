// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/mf/mf_theory.h"

#include <cmath>
#include <limits>

namespace convoy::experiments {
namespace {

struct Moments {
  double mean, square;
};

// The mean of tanh(scale z)^2 over a normal z. The trapezoidal rule is exact to rounding for such
// functions.
double mean_square_tanh(double scale) {
  constexpr double kStep = 1.0 / 64, kEnd = 12;
  double sum = 0;
  for (double z = -kEnd; z <= kEnd; z += kStep) {
    const double value = std::tanh(scale * z);
    sum += value * value * std::exp(-0.5 * z * z);
  }
  return sum * kStep / std::sqrt(2 * M_PI);
}

// The moments of phi(x) with x = scale * weight.
Moments moments_of_unit(const MfParameters& p, double scale) {
  const bool gauss = p.gnc_init() == MfPrior::Gauss;
  const double square = scale * scale * (gauss ? 1 : 1.0 / 3);
  const double half_mean = scale * (gauss ? std::sqrt(0.5 / M_PI) : 0.25);  // mean of max(x, 0)
  switch (p.activation()) {
    case MfActivation::Tanh:
      return {0, gauss ? mean_square_tanh(scale) : 1 - std::tanh(scale) / scale};
    case MfActivation::LeakyReLU:
      return {half_mean * (1 - p.negative_slope),
              square * (1 + p.negative_slope * p.negative_slope) / 2};
    case MfActivation::Linear:
      break;
  }
  return {0, square};
}

// The mean Gram matrix of a hidden layer: E (H H^T)_rs is `same` for r = s, else `other`.
struct HiddenGram {
  double same, other;
};

HiddenGram hidden_gram(const MfParameters& p) {
  if (p.depth == 1) return {1, 0};
  const auto width = static_cast<double>(p.width);
  const Moments unit = moments_of_unit(p, 1 / std::sqrt(width));
  HiddenGram gram{width * unit.square, width * unit.mean * unit.mean};
  if (p.depth == 2) return gram;
  gram.same = std::pow(width * unit.square, static_cast<double>(p.depth - 1));
  return gram;
}

}  // namespace

bool has_exact_prior_mean(const MfParameters& parameters) {
  return !parameters.gnc_normalize &&
         (parameters.depth <= 2 || parameters.activation() == MfActivation::Linear);
}

double mf_prior_mean(const MfProblem& problem) {
  const MfParameters& p = problem.parameters;
  if (!has_exact_prior_mean(p)) return std::numeric_limits<double>::quiet_NaN();
  const HiddenGram gram = hidden_gram(p);
  const double per_column =
      (p.gnc_init() == MfPrior::Gauss ? 1 : 1.0 / 3) / static_cast<double>(p.n_cols);
  // The sum of |P u|^2 over the vectors u that are 1 in one column and 0 elsewhere: the sum of P's
  // elements over all pairs of rows of one column.
  double same_column = 0;
  const auto rows = static_cast<size_t>(p.n_rows), cols = static_cast<size_t>(p.n_cols);
  for (size_t col = 0; col < cols; ++col) {
    same_column += static_cast<double>(rows);
    for (const std::vector<double>& known : problem.span) {
      double sum = 0;
      for (size_t row = 0; row < rows; ++row) sum += known[row * cols + col];
      same_column -= sum * sum;
    }
  }
  const double trace = problem.num_tested;
  const double of_guess =
      per_column * ((gram.same - gram.other) * trace + gram.other * same_column);
  const std::vector<double> zero(problem.num_entries, 0.0);
  return of_guess / trace + problem.test_loss(zero.data());
}

}  // namespace convoy::experiments
