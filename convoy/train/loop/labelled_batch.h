// SPDX-License-Identifier: Apache-2.0
//
// Rows of a data set laid one after another without padding, and the target of every token.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "convoy/data/datasets/tokens/token_dataset.h"
#include "convoy/model/kernels/cross_entropy/linear_cross_entropy.h"
#include "convoy/model/nn/causal_lm.h"

namespace convoy::train {

struct LabelledBatch {
  nn::TokenBatch tokens;
  kernels::LabelledTokens labels;  // the next token of the same row, where supervised
  int64_t num_tokens() const { return tokens.num_tokens(); }
  int64_t supervised_tokens() const { return labels.num_labels(); }
};

// `rows` may be empty: a batch of no tokens. Async: nothing waits for `device`.
LabelledBatch assemble_batch(const data::TokenDataset& dataset, const std::vector<int64_t>& rows,
                             at::Device device = at::kCPU);

// One token without a label: a pass over it adds nothing. For ranks without rows where every rank
// has to run the pass.
LabelledBatch idle_batch(at::Device device);

}  // namespace convoy::train
