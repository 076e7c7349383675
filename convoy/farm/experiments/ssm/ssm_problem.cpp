// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/ssm_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/random/numbers.h"

namespace convoy::experiments {
namespace {

std::vector<double> draw(const SsmProblem& problem, Stream stream, uint64_t guess, size_t count) {
  std::vector<float> normals(count);
  fill_normals({problem.key, stream, Precision::Exact, guess}, 0, normals);
  return {normals.begin(), normals.end()};
}

void draw_teacher(SsmProblem& problem) {
  const SsmParameters& p = problem.parameters;
  std::vector<double> states =
      draw(problem, Stream::Teacher, 0, static_cast<size_t>(p.teacher_rank));
  for (double& state : states) state = p.teacher_mean + p.teacher_sd * state;
  if (!p.alpha.is_auto()) states[0] = *p.alpha.value;
  problem.alpha = p.teacher_rank == 1 ? states[0] : std::numeric_limits<double>::quiet_NaN();
  // arXiv 2410.10473: B_0 = C_0 = 1, the other entries are sqrt((d - 1) / (t - 1)) with t =
  // max(rank, 2) states.
  const double weight = static_cast<double>(p.student_dim - 1) /
                        static_cast<double>(std::max<int64_t>(p.teacher_rank, 2) - 1);
  std::vector<double> power = states;
  for (uint32_t m = 1; m <= problem.num_powers; ++m) {
    double others = 0;
    for (size_t at = 1; at < states.size(); ++at) others += power[at];
    problem.target.push_back(power[0] + weight * others);
    for (size_t at = 0; at < states.size(); ++at) power[at] *= states[at];
  }
}

// (1 - alpha^2) w_2 - sum over m >= 3 of alpha^m w_m: r_n + alpha, multiplied by w_n1.
double excess(const std::vector<double>& w, double alpha, bool with_second) {
  double sum = with_second ? (1 - alpha * alpha) * w[1] : 0;
  for (size_t at = 2; at < w.size(); ++at)
    sum -= std::pow(alpha, static_cast<double>(at + 1)) * w[at];
  return sum;
}

void choose_second_entries(SsmProblem& problem) {
  const SsmParameters& p = problem.parameters;
  const double alpha = problem.alpha;
  const double slope = 1 - alpha * alpha;
  if (p.w_that_minimizes_loss) {
    for (auto& w : problem.w) w[1] = -excess(w, alpha, false) / slope;
  }
  if (p.w2_that_minimizes_loss || p.w2_that_maximizes_loss) {
    const auto& first = problem.w[0];
    auto& second = problem.w[1];
    // r_eff + alpha = (w_11 excess_1 + w_21 excess_2) / (w_11^2 + w_21^2). The second term is set
    // to cancel the first or to equal it.
    const double wanted =
        (p.w2_that_maximizes_loss ? 1 : -1) * first[0] * excess(first, alpha, true);
    if (second[0] == 0)
      throw ConfigError("w2_that_...: wanted a second sequence with w_1 other than 0",
                        {.hint = "take another seed, or give w in --data-file"});
    second[1] = (wanted / second[0] - excess(second, alpha, false)) / slope;
  }
  for (const auto& w : problem.w)
    for (const double entry : w)
      if (!std::isfinite(entry))
        throw ConfigError(fmt::format("w: a value is not finite (alpha = {})", alpha),
                          {.hint = "take another seed, or give alpha and w in --data-file"});
}

void draw_data(SsmProblem& problem) {
  const SsmParameters& p = problem.parameters;
  problem.w = p.w;
  if (p.input_e1) {
    problem.w.assign(1, std::vector<double>(problem.num_powers, 0.0));
    problem.w[0][0] = 1;
  }
  for (int64_t at = std::ssize(problem.w); at < p.num_sequences; ++at)
    problem.w.push_back(draw(problem, Stream::Data, static_cast<uint64_t>(at), problem.num_powers));
  choose_second_entries(problem);
}

void make_rows(SsmProblem& problem) {
  problem.divisor = static_cast<double>(problem.w.size());
  problem.rows = problem.w;
  if (problem.parameters.calc_loss_only_on_last_output) return;
  problem.divisor *= static_cast<double>(problem.num_powers + 1);
  for (const auto& w : problem.w) {
    for (uint32_t shift = 1; shift < problem.num_powers; ++shift) {
      auto& row = problem.rows.emplace_back(problem.num_powers, 0.0);
      std::copy(w.begin() + shift, w.end(), row.begin());
    }
  }
}

}  // namespace

uint32_t SsmProblem::tested_powers() const {
  uint32_t tested = 0;
  for (const auto& row : rows)
    for (uint32_t at = 0; at < num_powers; ++at)
      if (row[at] != 0) tested |= 1u << at;
  return tested == 0 ? 1 : tested;
}

double SsmProblem::train_loss(const double* s) const {
  double sum = 0;
  for (const auto& row : rows) {
    double dot = 0;
    for (uint32_t at = 0; at < num_powers; ++at) dot += row[at] * s[at];
    sum += dot * dot;
  }
  return sum / divisor;
}

double SsmProblem::generalisation_loss(const double* s) const {
  double sum = 0;
  for (uint32_t at = 0; at < num_powers; ++at) sum += s[at] * s[at];
  return sum;
}

SsmProblem draw_problem(const SsmParameters& parameters, int64_t seed) {
  SsmProblem problem;
  problem.parameters = parameters;
  problem.key = stream_key(parameters.sweep_seed, seed);
  problem.student_dim = static_cast<uint32_t>(parameters.student_dim);
  problem.num_powers = static_cast<uint32_t>(parameters.sequence_length - 1);
  problem.prior_sd = parameters.prior_sd.value.value_or(
      1 / std::sqrt(static_cast<double>(parameters.student_dim)));
  draw_teacher(problem);
  draw_data(problem);
  make_rows(problem);
  return problem;
}

}  // namespace convoy::experiments
