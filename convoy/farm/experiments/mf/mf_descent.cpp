// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/mf/mf_descent.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/random/numbers.h"

namespace convoy::experiments {
namespace {

std::vector<uint32_t> units_of(const MfParameters& p) {
  std::vector<uint32_t> units = {static_cast<uint32_t>(p.n_rows)};
  for (int64_t layer = 0; layer + 1 < p.depth; ++layer)
    units.push_back(static_cast<uint32_t>(p.width));
  units.push_back(static_cast<uint32_t>(p.n_cols));
  return units;
}

// The number of updates before the final loss is computed.
int64_t steps_of(const MfDescent& descent) {
  return (descent.epochs - 1) / descent.log_period * descent.log_period + 1;
}

double velocity_factor(const MfDescent& descent) {
  return descent.apply_momentum ? descent.momentum : 0;
}

// Problems with the same key may share a batch.
using Shape = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, MfActivation, int64_t, bool>;
Shape shape_of(const MfParameters& p) {
  return {p.n_rows,
          p.n_cols,
          p.width,
          p.depth,
          p.num_measurements,
          p.activation(),
          steps_of(p.descent),
          velocity_factor(p.descent) > 0};
}

using Lane = std::pair<const MfProblem*, const MfWeights*>;

DescentBatch make_batch(const std::vector<Lane>& lanes) {
  const MfParameters& p = lanes[0].first->parameters;
  DescentBatch batch;
  batch.num_problems = lanes.size();
  batch.n_rows = static_cast<uint32_t>(p.n_rows);
  batch.n_cols = static_cast<uint32_t>(p.n_cols);
  batch.activation = p.activation();
  batch.units = units_of(p);
  batch.uses_velocity = velocity_factor(p.descent) > 0;
  const size_t layers = batch.num_layers(), entries = lanes[0].first->num_entries;
  batch.weights.resize(batch.first_weight(layers));
  batch.gradients.resize(batch.weights.size());
  if (batch.uses_velocity) batch.velocity.resize(batch.weights.size());
  batch.outputs.resize(batch.first_output(layers));
  batch.slopes.resize(batch.outputs.size());
  batch.measurements.resize(entries * static_cast<size_t>(p.num_measurements));
  batch.targets.resize(static_cast<size_t>(p.num_measurements));
  for (size_t lane = 0; lane < kDescentLanes; ++lane) {
    const auto& [problem, weights] = lanes[lane < lanes.size() ? lane : 0];
    const MfParameters& own = problem->parameters;
    batch.negative_slope.lane[lane] = own.negative_slope;
    batch.lr.lane[lane] = own.descent.lr;
    batch.momentum.lane[lane] = velocity_factor(own.descent);
    for (size_t layer = 0; layer < layers; ++layer)
      for (size_t at = 0; at < weights->at(layer).size(); ++at)
        batch.weights[batch.first_weight(layer) + at].lane[lane] = (*weights)[layer][at];
    for (size_t at = 0; at < batch.targets.size(); ++at) {
      batch.targets[at].lane[lane] = problem->targets[at];
      for (size_t row = 0; row < batch.n_rows; ++row)
        for (size_t col = 0; col < batch.n_cols; ++col)
          batch.measurements[at * entries + col * batch.n_rows + row].lane[lane] =
              problem->measurements[at][row * batch.n_cols + col];
    }
  }
  return batch;
}

sweep::CellOutcome outcome_of(const DescentBatch& batch, const MfProblem& problem, size_t lane,
                              int64_t steps) {
  const LaneDoubles* const last = batch.outputs.data() + batch.first_output(batch.num_layers() - 1);
  std::vector<double> y(problem.num_entries);
  for (size_t row = 0; row < batch.n_rows; ++row)
    for (size_t col = 0; col < batch.n_cols; ++col)
      y[row * batch.n_cols + col] = last[col * batch.n_rows + row].lane[lane];
  return {problem.test_loss(y.data()), problem.train_loss(y.data()), steps};
}

}  // namespace

MfWeights mf_initial_weights(const MfProblem& problem) {
  const std::vector<uint32_t> units = units_of(problem.parameters);
  MfWeights weights;
  for (size_t layer = 0; layer + 1 < units.size(); ++layer) {
    std::vector<float> drawn(size_t{units[layer]} * units[layer + 1]);
    fill_uniforms({problem.key, Stream::DescentInit, Precision::Exact, layer}, 0, drawn);
    const double scale =
        problem.parameters.descent.init_scale / std::sqrt(static_cast<double>(units[layer]));
    std::vector<double>& scaled = weights.emplace_back();
    for (const float number : drawn) scaled.push_back(scale * double{number});
  }
  return weights;
}

void descend_on_cpu(std::vector<DescentBatch>& batches, int64_t steps) {
  for (DescentBatch& batch : batches) {
    for (int64_t step = 0; step < steps; ++step) descend_once(batch);
    evaluate(batch);
  }
}

std::vector<sweep::CellOutcome> descend_mf(const std::vector<MfProblem>& problems,
                                           const std::vector<MfWeights>& initial,
                                           const MfDescend& descend) {
  CONVOY_INVARIANT(problems.size() == initial.size(), "{} problems, {} initial weights",
                   problems.size(), initial.size());
  std::map<Shape, std::vector<size_t>> groups;
  for (size_t at = 0; at < problems.size(); ++at)
    groups[shape_of(problems[at].parameters)].push_back(at);
  std::vector<sweep::CellOutcome> outcomes(problems.size());
  for (const auto& [shape, members] : groups) {
    std::vector<DescentBatch> batches;
    for (size_t from = 0; from < members.size(); from += kDescentLanes) {
      std::vector<Lane> lanes;
      for (size_t at = from; at < std::min(from + kDescentLanes, members.size()); ++at)
        lanes.emplace_back(&problems[members[at]], &initial[members[at]]);
      batches.push_back(make_batch(lanes));
    }
    const int64_t steps = steps_of(problems[members[0]].parameters.descent);
    descend(batches, steps);
    for (size_t at = 0; at < members.size(); ++at)
      outcomes[members[at]] =
          outcome_of(batches[at / kDescentLanes], problems[members[at]], at % kDescentLanes, steps);
  }
  return outcomes;
}

}  // namespace convoy::experiments
