// SPDX-License-Identifier: Apache-2.0
//
// Prompts with the answers of other rows: over them KTO estimates how far a model is from its
// reference. Every row of a list has the answer of the row before it in the list, and the first one
// that of the last, so the answers of a step are compared with themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/data/datasets/batches/batch_plan.h"
#include "convoy/data/datasets/tokens/token_dataset.h"

namespace convoy::train {

// Rows of a data set.
struct Mismatch {
  int64_t prompt = 0;
  int64_t answer = 0;

  bool operator==(const Mismatch&) const = default;
};

// As many as rows; none for a single row, which has no other answer.
std::vector<Mismatch> mismatches_of(const std::vector<int64_t>& rows);
// The mismatches of steps [first, end) of an epoch, each step by itself.
std::vector<Mismatch> mismatches_of_steps(const data::BatchPlan& plan, int64_t epoch, int64_t first,
                                          int64_t end);

// Their rows: of at most `most_tokens` tokens, the first ones.
data::TokenDataset mismatched_rows(const data::TokenDataset& dataset,
                                   const std::vector<Mismatch>& mismatches, int64_t most_tokens);

}  // namespace convoy::train
