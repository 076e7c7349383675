// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/memory/batch_probe.h"

#include <c10/util/Exception.h>

#include "convoy/data/datasets/batches/batch_plan.h"
#include "convoy/model/kernels/sum_of_squares/sum_of_squares.h"
#include "convoy/train/comm/exchange.h"
#include "convoy/train/loop/language_objective.h"

namespace convoy::recipes {

void BatchProbe::pass(const Rows& rows) {
  parallel::Strategy& strategy = parts_.strategy;
  const int64_t micro_batches = parts_.accumulates ? 2 : 1;
  Rows of_step;
  for (int64_t share = 0; share < micro_batches * strategy.world(); ++share)
    of_step.insert(of_step.end(), rows.begin(), rows.end());
  const data::BatchPlan plan(data::TokenDataset::from_rows(of_step),
                             {.batch_size = static_cast<int64_t>(rows.size()),
                              .grad_accum = micro_batches,
                              .world_size = strategy.world(),
                              .shuffle = false});
  const data::TokenDataset no_rows;
  train::LanguageObjective objective(parts_.model, plan, no_rows, 1);
  objective.begin({.first = 0, .end = 1}, strategy.rank());
  for (int64_t number = 0; number < micro_batches; ++number) {
    const train::MicroBatchPosition place = objective.take();
    strategy.begin_micro_batch(number + 1 == micro_batches ? parallel::MicroBatch::Last
                                                           : parallel::MicroBatch::More);
    objective.loss({.draw_key = 0, .recompute = parts_.recompute})
        .sum.div(place.step.weight)
        .backward();
  }
}

// Returns false when memory ran out.
bool BatchProbe::step(const Rows& rows) {
  parallel::Strategy& strategy = parts_.strategy;
  bool fits = true;
  try {
    pass(rows);
  } catch (const c10::OutOfMemoryError&) {
    // When other ranks wait for this one, none could go on.
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

std::optional<std::vector<device::PeakMemory>> BatchProbe::measure(const std::vector<Rows>& steps) {
  comm::Group& group = parts_.strategy.group();
  // The very first step allocates lasting memory: packed weights, buckets.
  if (!has_stepped_ && !step(steps.front())) return std::nullopt;
  has_stepped_ = true;
  group.barrier();
  device::PeakMeter meter(parts_.model.device());
  group.barrier();
  for (const Rows& rows : steps)
    if (!step(rows)) return std::nullopt;
  return comm::exchange(group, meter.stop());
}

}  // namespace convoy::recipes
