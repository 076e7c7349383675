// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/mf/mf_problem.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/random/numbers.h"

namespace convoy::experiments {
namespace {

double dot(const double* a, const double* b, size_t count) {
  double sum = 0;
  for (size_t at = 0; at < count; ++at) sum += a[at] * b[at];
  return sum;
}

double norm(const std::vector<double>& a) { return std::sqrt(dot(a.data(), a.data(), a.size())); }

std::vector<double> normals(PhiloxKey key, Stream stream, uint64_t guess, size_t count) {
  std::vector<float> drawn(count);
  fill_normals({key, stream, Precision::Exact, guess}, 0, drawn);
  return {drawn.begin(), drawn.end()};
}

void scale_to_norm(std::vector<double>& matrix, double wanted) {
  const double factor = wanted / norm(matrix);
  for (double& entry : matrix) entry *= factor;
}

std::vector<double> draw_truth(const MfProblem& problem) {
  const MfParameters& p = problem.parameters;
  const auto rows = static_cast<size_t>(p.n_rows), cols = static_cast<size_t>(p.n_cols),
             rank = static_cast<size_t>(p.gt_rank);
  const std::vector<double> u = normals(problem.key, Stream::Teacher, 0, rows * rank);
  const std::vector<double> v = normals(problem.key, Stream::Teacher, 1, rank * cols);
  std::vector<double> truth(rows * cols, 0.0);
  for (size_t row = 0; row < rows; ++row)
    for (size_t inner = 0; inner < rank; ++inner)
      for (size_t col = 0; col < cols; ++col)
        truth[row * cols + col] += u[row * rank + inner] * v[inner * cols + col];
  scale_to_norm(truth, p.gt_norm);
  return truth;
}

// The first num_measurements places of a random permutation of the entries.
std::vector<size_t> draw_entries(const MfProblem& problem) {
  std::vector<uint32_t> words(problem.num_entries);
  fill_words({problem.key, Stream::Data, Precision::Exact, 0}, 0, words);
  std::vector<size_t> entries(problem.num_entries);
  std::iota(entries.begin(), entries.end(), size_t{0});
  for (size_t at = 0; at < entries.size(); ++at) {
    const uint64_t left = entries.size() - at;
    std::swap(entries[at], entries[at + ((words[at] * left) >> 32)]);
  }
  entries.resize(static_cast<size_t>(problem.parameters.num_measurements));
  return entries;
}

void draw_measurements(MfProblem& problem) {
  const auto count = static_cast<size_t>(problem.parameters.num_measurements);
  if (problem.parameters.completion) {
    for (const size_t entry : draw_entries(problem))
      problem.measurements.emplace_back(problem.num_entries, 0.0)[entry] = 1;
    return;
  }
  for (size_t at = 0; at < count; ++at) {
    problem.measurements.push_back(normals(problem.key, Stream::Data, at, problem.num_entries));
    scale_to_norm(problem.measurements.back(), 1);
  }
}

// Gram-Schmidt, applied twice: a single pass leaves errors of the size of the condition number.
std::vector<std::vector<double>> orthonormal_basis(const std::vector<std::vector<double>>& rows) {
  constexpr double kDependent = 1e-9;
  std::vector<std::vector<double>> basis;
  for (const std::vector<double>& row : rows) {
    std::vector<double> left = row;
    for (int turn = 0; turn < 2; ++turn)
      for (const std::vector<double>& known : basis) {
        const double part = dot(left.data(), known.data(), left.size());
        for (size_t at = 0; at < left.size(); ++at) left[at] -= part * known[at];
      }
    const double rest = norm(left);
    if (!(rest > kDependent * norm(row))) continue;
    for (double& entry : left) entry /= rest;
    basis.push_back(std::move(left));
  }
  return basis;
}

}  // namespace

double MfProblem::train_loss(const double* y) const {
  double sum = 0;
  for (size_t at = 0; at < measurements.size(); ++at) {
    const double residual = dot(measurements[at].data(), y, num_entries) - targets[at];
    sum += residual * residual;
  }
  return sum / static_cast<double>(measurements.size());
}

double MfProblem::test_loss(const double* y) const {
  std::vector<double> left(num_entries);
  for (size_t at = 0; at < num_entries; ++at) left[at] = y[at] - truth[at];
  for (const std::vector<double>& known : span) {
    const double part = dot(left.data(), known.data(), num_entries);
    for (size_t at = 0; at < num_entries; ++at) left[at] -= part * known[at];
  }
  return dot(left.data(), left.data(), num_entries) / num_tested;
}

MfProblem draw_mf_problem(const MfParameters& parameters, int64_t seed) {
  MfProblem problem;
  problem.parameters = parameters;
  problem.key = stream_key(parameters.sweep_seed, seed);
  problem.num_entries = static_cast<uint32_t>(parameters.num_entries());
  problem.truth = parameters.truth.empty() ? draw_truth(problem) : parameters.truth;
  problem.measurements = parameters.measurements;
  if (problem.measurements.empty()) draw_measurements(problem);
  for (const std::vector<double>& one : problem.measurements)
    problem.targets.push_back(dot(one.data(), problem.truth.data(), problem.num_entries));
  problem.span =
      parameters.completion ? problem.measurements : orthonormal_basis(problem.measurements);
  if (problem.span.size() >= problem.num_entries)
    throw ConfigError("num_measurements: the measurements leave nothing to test on",
                      {.hint = "lower --num-measurements"});
  problem.num_tested = problem.num_entries - static_cast<uint32_t>(problem.span.size());
  return problem;
}

}  // namespace convoy::experiments
