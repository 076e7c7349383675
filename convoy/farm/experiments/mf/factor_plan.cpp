// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/mf/factor_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace convoy::experiments {
namespace {

using Rows = std::vector<std::vector<double>>;

void add_layer(FactorPlan& plan, FactorPlan::Layer layer) {
  layer.first_block = plan.num_blocks;
  plan.num_blocks += plan.blocks_of(layer.num_slots);
  plan.layers.push_back(layer);
}

void add_layers(FactorPlan& plan, const MfParameters& p) {
  const bool triangular = p.shortcut == MfShortcut::Bartlett;
  const auto width = static_cast<uint32_t>(p.width);
  const auto hidden_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(p.width)));
  uint32_t inputs = plan.n_rows;
  for (int64_t at = 0; at + 1 < p.depth; ++at) {
    const uint32_t outputs = triangular ? plan.n_rows : width;
    const uint32_t slots = triangular ? plan.n_rows * (plan.n_rows + 1) / 2 : inputs * outputs;
    add_layer(plan, {.inputs = inputs,
                     .outputs = outputs,
                     .num_slots = slots,
                     .scale = hidden_scale,
                     .hidden = true});
    inputs = triangular || p.shortcut == MfShortcut::Gram ? plan.n_rows : width;
  }
  add_layer(plan, {.inputs = inputs,
                   .outputs = plan.n_cols,
                   .num_slots = inputs * plan.n_cols,
                   .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(p.n_cols)))});
}

// Rotates the rows, and the targets with them, so that row k begins with entry k: the sum of the
// squares of the residuals stays, with fewer products. Householder.
void make_trapezoid(Rows& rows, std::vector<double>& targets) {
  for (size_t at = 0; at < rows.size(); ++at) {
    double norm = 0;
    for (size_t row = at; row < rows.size(); ++row) norm += rows[row][at] * rows[row][at];
    norm = std::sqrt(norm);
    if (norm == 0) continue;
    std::vector<double> mirror(rows.size(), 0.0);
    for (size_t row = at; row < rows.size(); ++row) mirror[row] = rows[row][at];
    mirror[at] += std::copysign(norm, mirror[at]);
    double square = 0;
    for (const double entry : mirror) square += entry * entry;
    const auto reflect = [&](const auto& entry) {
      double dot = 0;
      for (size_t row = at; row < rows.size(); ++row) dot += mirror[row] * entry(row);
      for (size_t row = at; row < rows.size(); ++row) entry(row) -= 2 * dot / square * mirror[row];
    };
    for (size_t col = 0; col < rows[at].size(); ++col)
      reflect([&](size_t row) -> double& { return rows[row][col]; });
    reflect([&](size_t row) -> double& { return targets[row]; });
    for (size_t row = at + 1; row < rows.size(); ++row) rows[row][at] = 0;
  }
}

void add_row(FactorPlan& plan, const std::vector<double>& factors, double target) {
  const auto used = [](double factor) { return factor != 0; };
  const auto first = std::find_if(factors.begin(), factors.end(), used);
  const auto last = std::find_if(factors.rbegin(), factors.rend(), used).base();
  CheckRow row;
  row.target = static_cast<float>(target);
  row.first_coefficient = static_cast<uint32_t>(plan.coefficients.size());
  if (first != factors.end()) {
    row.first_entry = static_cast<uint32_t>(first - factors.begin());
    row.num_entries = static_cast<uint32_t>(last - first);
    for (auto at = first; at != last; ++at) plan.coefficients.push_back(static_cast<float>(*at));
  }
  plan.rows.push_back(row);
}

void add_check(FactorPlan& plan, const MfProblem& problem) {
  Rows rows(problem.measurements.size(), std::vector<double>(problem.num_entries));
  for (size_t at = 0; at < rows.size(); ++at)
    for (uint32_t row = 0; row < plan.n_rows; ++row)
      for (uint32_t col = 0; col < plan.n_cols; ++col)
        rows[at][col * plan.n_rows + row] = problem.measurements[at][row * plan.n_cols + col];
  std::vector<double> targets = problem.targets;
  const bool independent = problem.span.size() == rows.size();
  if (!problem.parameters.completion && independent) make_trapezoid(rows, targets);
  for (size_t at = 0; at < rows.size(); ++at) add_row(plan, rows[at], targets[at]);
  plan.limit =
      static_cast<float>(problem.parameters.gnc_eps_train * static_cast<double>(rows.size()));
}

}  // namespace

FactorPlan factor_plan(const MfProblem& problem, MfCheck check, Precision precision) {
  const MfParameters& p = problem.parameters;
  FactorPlan plan;
  plan.n_rows = static_cast<uint32_t>(p.n_rows);
  plan.n_cols = static_cast<uint32_t>(p.n_cols);
  plan.activation = p.activation;
  plan.negative_slope = static_cast<float>(p.negative_slope);
  plan.prior = p.gnc_init;
  if (precision == Precision::Fast && p.gnc_init == MfPrior::Gauss)
    plan.slots_per_block = kPackedSlotsPerBlock;
  plan.normalize = p.gnc_normalize;
  plan.softening = static_cast<float>(p.gnc_softening);
  plan.reduce = p.shortcut == MfShortcut::Gram;
  add_layers(plan, p);
  if (p.shortcut == MfShortcut::Bartlett)
    for (uint32_t row = 0; row < plan.n_rows; ++row)
      plan.diagonal.push_back(chi_series(static_cast<uint32_t>(p.width) - row));
  plan.limit = std::numeric_limits<float>::infinity();
  if (check == MfCheck::TrainLoss) add_check(plan, problem);
  return plan;
}

float* aligned_to_lanes(float* memory) {
  const size_t misfit = (reinterpret_cast<uintptr_t>(memory) / sizeof(float)) % kFactorGuesses;
  return memory + (kFactorGuesses - misfit) % kFactorGuesses;
}

}  // namespace convoy::experiments
