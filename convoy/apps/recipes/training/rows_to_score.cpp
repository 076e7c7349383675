// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/rows_to_score.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>

#include "convoy/core/base/hash.h"
#include "convoy/train/loop/train_loop.h"

namespace convoy::recipes {

std::string RowsToScore::content_hash() const {
  if (mismatches.empty()) return dataset.content_hash();
  Sha256 hash;
  hash.update(dataset.content_hash());
  hash.update(std::as_bytes(std::span(mismatches)));
  return hash.hex();
}

std::vector<int64_t> all_rows(const data::TokenDataset& dataset) {
  std::vector<int64_t> all(static_cast<size_t>(dataset.num_rows()));
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

std::vector<int64_t> rows_of_steps(const TrainingRun& run, const LanguageInput& input,
                                   const SettledBatch& batch) {
  const data::BatchPlan& plan = batch.plan;
  const int64_t steps = train::total_steps(batch.settings.train, plan.steps_per_epoch());
  if (steps >= plan.steps_per_epoch() || must_measure(run, input)) return all_rows(plan.dataset());
  std::set<int64_t> rows;
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t micro_batch = 0; micro_batch < plan.config().grad_accum; ++micro_batch)
      for (int64_t rank = 0; rank < plan.config().world_size; ++rank)
        for (const int64_t row : plan.rows({0, step}, micro_batch, rank)) rows.insert(row);
  return {rows.begin(), rows.end()};
}

RowsToScore lent_answers(const SettledBatch& batch, int64_t epoch) {
  const data::BatchPlan& plan = batch.plan;
  const int64_t of_epoch = plan.steps_per_epoch();
  const int64_t steps = train::total_steps(batch.settings.train, of_epoch) - epoch * of_epoch;
  RowsToScore rows{.dataset = plan.dataset(),
                   .wanted = {},
                   .mismatches = train::mismatches_of_steps(plan, epoch, 0, of_epoch)};
  for (const train::Mismatch& mismatch :
       train::mismatches_of_steps(plan, epoch, 0, std::min(of_epoch, steps)))
    rows.wanted.push_back(mismatch.prompt);
  return rows;
}

LentSets lent_sets(const SettledBatch& batch) {
  const int64_t of_epoch = batch.plan.steps_per_epoch();
  const int64_t steps = train::total_steps(batch.settings.train, of_epoch);
  LentSets sets;
  std::map<std::string, size_t> known;  // by content
  for (int64_t epoch = 0; epoch * of_epoch < steps; ++epoch) {
    const auto [set, is_new] =
        known.emplace(lent_answers(batch, epoch).content_hash(), sets.epoch_of_set.size());
    if (is_new) sets.epoch_of_set.push_back(epoch);
    sets.set_of_epoch.push_back(set->second);
  }
  return sets;
}

}  // namespace convoy::recipes
