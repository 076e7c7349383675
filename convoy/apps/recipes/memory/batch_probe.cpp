// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/memory/batch_probe.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "convoy/core/base/seconds_since.h"
#include "convoy/data/datasets/batches/batch_plan.h"
#include "convoy/model/kernels/sum_of_squares/sum_of_squares.h"
#include "convoy/train/comm/exchange.h"
#include "convoy/train/loop/language_objective.h"

namespace convoy::recipes {
namespace {

int64_t tokens_of(const BatchProbe::Rows& rows) {
  int64_t tokens = 0;
  for (const data::EncodedRow& row : rows) tokens += std::ssize(row.ids);
  return tokens;
}

}  // namespace

// Returns false when a stop was requested.
bool BatchProbe::pass(const Rows& rows) {
  parallel::Strategy& strategy = parts_.strategy;
  Rows of_step;
  for (int64_t share = 0; share < micro_batches() * strategy.world(); ++share)
    of_step.insert(of_step.end(), rows.begin(), rows.end());
  const data::BatchPlan plan(data::TokenDataset::from_rows(of_step),
                             {.batch_size = static_cast<int64_t>(rows.size()),
                              .grad_accum = micro_batches(),
                              .world_size = strategy.world(),
                              .shuffle = false});
  const data::TokenDataset no_rows;
  train::LanguageObjective objective(parts_.model, plan, no_rows, 1);
  objective.begin({.first = 0, .end = 1}, strategy.rank());
  for (int64_t number = 0; number < micro_batches(); ++number) {
    if (anyone_stops()) return false;
    const train::MicroBatchPosition place = objective.take();
    strategy.begin_micro_batch(number + 1 == micro_batches() ? parallel::MicroBatch::Last
                                                             : parallel::MicroBatch::More);
    objective.loss({.draw_key = 0, .recompute = parts_.recompute})
        .sum.div(place.step.weight)
        .backward();
  }
  return true;
}

// Returns false when memory ran out or a stop was requested.
bool BatchProbe::step(const Rows& rows) {
  parallel::Strategy& strategy = parts_.strategy;
  bool fits = true;
  try {
    if (!pass(rows)) return false;
  } catch (const c10::OutOfMemoryError&) {
    // With several ranks, the other ranks wait for this one and cannot continue.
    if (strategy.world() > 1) throw;
    fits = false;
  }
  strategy.finish_gradients();
  const std::vector<at::Tensor> gradients = parallel::gradients_of(strategy.shards());
  for (at::Tensor gradient : gradients) gradient.zero_();
  kernels::sum_of_squares(gradients).cpu();
  parts_.optimizer.step(0);
  strategy.finish_step();
  return fits;
}

std::optional<BatchProbe::Measured> BatchProbe::measure(const std::vector<Rows>& steps) {
  comm::Group& group = parts_.strategy.group();
  // The very first step allocates lasting memory: packed weights, buckets.
  if (!has_stepped_ && !step(steps.front())) return std::nullopt;
  has_stepped_ = true;
  group.barrier();
  device::PeakMeter meter(parts_.model.device());
  group.barrier();
  struct RankFigures {
    device::PeakMemory peak = {};
    double seconds = 0;
  };
  RankFigures own{.seconds = std::numeric_limits<double>::infinity()};
  const int64_t step_tokens = tokens_of(steps.back());
  for (const Rows& rows : steps) {
    const auto begin = std::chrono::steady_clock::now();
    if (!step(rows)) return std::nullopt;
    // Takes the faster of equal steps, because other work of the machine slows some.
    if (tokens_of(rows) == step_tokens) own.seconds = std::min(own.seconds, seconds_since(begin));
  }
  own.peak = meter.stop();
  Measured measured;
  double seconds = 0;
  for (const RankFigures& rank : comm::exchange(group, own)) {
    measured.peaks.push_back(rank.peak);
    seconds = std::max(seconds, rank.seconds);
  }
  const int64_t tokens = step_tokens * micro_batches() * group.size();
  measured.tokens_per_second = static_cast<double>(tokens) / std::max(seconds, 1e-9);
  return measured;
}

}  // namespace convoy::recipes
