// SPDX-License-Identifier: Apache-2.0
//
// The rows that a reference scores: rows of a data set, and for task kto its prompts with answers
// of other rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/apps/recipes/training/language_start.h"
#include "convoy/train/loop/mismatched_rows.h"

namespace convoy::recipes {

struct RowsToScore {
  const data::TokenDataset& dataset;
  std::vector<int64_t> wanted;  // rows of the data set
  // Pairs of a prompt's row and the row of the answer to score with it; empty: each row has its own
  // answer. Pairs of wanted rows have the order of `wanted`.
  std::vector<train::Mismatch> mismatches = {};

  std::string content_hash() const;  // over the data set and the pairs
};

std::vector<int64_t> all_rows(const data::TokenDataset& dataset);

// The rows that the steps of the run read, in order.
std::vector<int64_t> rows_of_steps(const TrainingRun& run, const LanguageInput& input,
                                   const SettledBatch& batch);

// The prompts of an epoch, each with the other answer that its step pairs it with. `wanted` are the
// rows of the steps that the run takes.
RowsToScore lent_answers(const SettledBatch& batch, int64_t epoch);

// The sets of lent_answers(). Epochs with equal pairs share a set; without a shuffle all epochs do.
struct LentSets {
  std::vector<int64_t> epoch_of_set;  // first epoch with the set; it has the most steps
  std::vector<size_t> set_of_epoch;
};
LentSets lent_sets(const SettledBatch& batch);

}  // namespace convoy::recipes
