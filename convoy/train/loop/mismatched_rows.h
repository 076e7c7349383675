// SPDX-License-Identifier: Apache-2.0
//
// Prompts with the answers of other rows. KTO uses them to estimate how far a model is from its
// reference. In a list of rows, each prompt gets the answer of the row before it, and the first
// prompt the answer of the last row. So a step compares only answers of its own rows.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/data/datasets/batches/batch_plan.h"
#include "convoy/data/datasets/tokens/token_dataset.h"

namespace convoy::train {

// A prompt with an answer that belongs to another row. Both members are indices of rows.
struct Mismatch {
  int64_t prompt = 0;
  int64_t answer = 0;

  bool operator==(const Mismatch&) const = default;
};

// One mismatch per row; none for a single row, because there is no other answer.
std::vector<Mismatch> mismatches_of(const std::vector<int64_t>& rows);
// The mismatches of steps [first, end) of an epoch, each step by itself.
std::vector<Mismatch> mismatches_of_steps(const data::BatchPlan& plan, int64_t epoch, int64_t first,
                                          int64_t end);

// Makes a row of tokens for each mismatch, cut to its first `most_tokens` tokens.
data::TokenDataset mismatched_rows(const data::TokenDataset& dataset,
                                   const std::vector<Mismatch>& mismatches, int64_t most_tokens);

}  // namespace convoy::train
