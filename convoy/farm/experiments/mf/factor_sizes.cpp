// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/mf/factor_sizes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace convoy::experiments {
namespace {

using Rows = std::vector<std::vector<double>>;

void add_layer(FactorSizes& sizes, FactorLayer layer) {
  layer.first_block = sizes.num_blocks;
  sizes.num_blocks += sizes.blocks_of(layer.num_slots);
  sizes.layers.push_back(layer);
}

void add_layers(FactorSizes& sizes, const MfParameters& p) {
  const bool triangular = p.shortcut() == MfShortcut::Bartlett;
  const auto width = static_cast<uint32_t>(p.width);
  const auto hidden_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(p.width)));
  uint32_t inputs = sizes.n_rows;
  for (int64_t at = 0; at + 1 < p.depth; ++at) {
    const uint32_t outputs = triangular ? sizes.n_rows : width;
    const uint32_t slots = triangular ? sizes.n_rows * (sizes.n_rows + 1) / 2 : inputs * outputs;
    add_layer(sizes, {.inputs = inputs,
                      .outputs = outputs,
                      .num_slots = slots,
                      .scale = hidden_scale,
                      .hidden = true});
    inputs = triangular || p.shortcut() == MfShortcut::Gram ? sizes.n_rows : width;
  }
  add_layer(sizes, {.inputs = inputs,
                    .outputs = sizes.n_cols,
                    .num_slots = inputs * sizes.n_cols,
                    .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(p.n_cols)))});
}

// Applies Householder reflections to the rows and the targets, so that row k begins with entry k.
// The sum of the squared residuals does not change and needs fewer products.
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

void add_row(FactorSizes& sizes, const std::vector<double>& factors, double target) {
  const auto used = [](double factor) { return factor != 0; };
  const auto first = std::find_if(factors.begin(), factors.end(), used);
  const auto last = std::find_if(factors.rbegin(), factors.rend(), used).base();
  CheckRow row;
  row.target = static_cast<float>(target);
  row.first_coefficient = static_cast<uint32_t>(sizes.coefficients.size());
  if (first != factors.end()) {
    row.first_entry = static_cast<uint32_t>(first - factors.begin());
    row.num_entries = static_cast<uint32_t>(last - first);
    for (auto at = first; at != last; ++at) sizes.coefficients.push_back(static_cast<float>(*at));
  }
  sizes.rows.push_back(row);
}

void add_check(FactorSizes& sizes, const MfProblem& problem) {
  Rows rows(problem.measurements.size(), std::vector<double>(problem.num_entries));
  for (size_t at = 0; at < rows.size(); ++at)
    for (uint32_t row = 0; row < sizes.n_rows; ++row)
      for (uint32_t col = 0; col < sizes.n_cols; ++col)
        rows[at][col * sizes.n_rows + row] = problem.measurements[at][row * sizes.n_cols + col];
  std::vector<double> targets = problem.targets;
  const bool independent = problem.span.size() == rows.size();
  if (!problem.parameters.completion && independent) make_trapezoid(rows, targets);
  for (size_t at = 0; at < rows.size(); ++at) add_row(sizes, rows[at], targets[at]);
  sizes.limit =
      static_cast<float>(problem.parameters.gnc_eps_train * static_cast<double>(rows.size()));
}

}  // namespace

FactorSizes factor_sizes(const MfProblem& problem, MfCheck check, Precision precision) {
  const MfParameters& p = problem.parameters;
  FactorSizes sizes;
  sizes.n_rows = static_cast<uint32_t>(p.n_rows);
  sizes.n_cols = static_cast<uint32_t>(p.n_cols);
  sizes.activation = p.activation();
  sizes.negative_slope = static_cast<float>(p.negative_slope);
  sizes.prior = p.gnc_init();
  if (precision == Precision::Fast && p.gnc_init() == MfPrior::Gauss)
    sizes.slots_per_block = kPackedSlotsPerBlock;
  sizes.normalize = p.gnc_normalize;
  sizes.softening = static_cast<float>(p.gnc_softening);
  sizes.reduce = p.shortcut() == MfShortcut::Gram;
  add_layers(sizes, p);
  if (p.shortcut() == MfShortcut::Bartlett)
    for (uint32_t row = 0; row < sizes.n_rows; ++row)
      sizes.diagonal.push_back(chi_series(static_cast<uint32_t>(p.width) - row));
  sizes.limit = std::numeric_limits<float>::infinity();
  if (check == MfCheck::TrainLoss) add_check(sizes, problem);
  return sizes;
}

float* aligned_to_lanes(float* memory) {
  const size_t misfit = (reinterpret_cast<uintptr_t>(memory) / sizeof(float)) % kFactorGuesses;
  return memory + (kFactorGuesses - misfit) % kFactorGuesses;
}

}  // namespace convoy::experiments
