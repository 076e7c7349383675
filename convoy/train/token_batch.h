// SPDX-License-Identifier: Apache-2.0
//
// Rows of a data set laid one after another without padding, and the target of every token.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "convoy/data/token_dataset.h"
#include "convoy/nn/causal_lm.h"

namespace convoy::train {

struct LabelledBatch {
  nn::TokenBatch tokens;
  at::Tensor labels_T;  // int64: the next token of the same row where supervised, else -100
  int64_t supervised_tokens = 0;
  int64_t num_tokens() const { return tokens.row_starts.back(); }
};

// `rows` may be empty: a batch of no tokens.
LabelledBatch assemble_batch(const data::TokenDataset& dataset, const std::vector<int64_t>& rows);

}  // namespace convoy::train
