// SPDX-License-Identifier: Apache-2.0
//
// Loss of a model over a data set, shared between ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "convoy/data/datasets/tokens/token_dataset.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/train/comm/group.h"

namespace convoy::train {

struct EvaluationFigures {
  double nll_sum = 0;  // nats over supervised tokens, each times its weight
  double weight = 0;   // the sum of their weights
  int64_t supervised_tokens = 0;
  int64_t correct_tokens = 0;  // the target was the most likely token
  int64_t rows = 0;
  double seconds = 0;

  double loss() const { return nll_sum / (weight > 0 ? weight : 1); }
  double perplexity() const;
  double token_accuracy() const;
};

struct RowLoss {
  double nll = 0;     // nats over supervised tokens, each times its weight
  double weight = 0;  // the sum of their weights
  int64_t supervised_tokens = 0;
  int64_t correct_tokens = 0;
};

// Losses of `rows`, computed as one batch. A row's figures do not depend on the other rows.
std::vector<RowLoss> row_losses(nn::CausalLm& model, const data::TokenDataset& dataset,
                                const std::vector<int64_t>& rows);

// Collective. Blocks. The figures of `rows` of the data set, in their order, on every rank: dealt
// round robin to ranks, `batch_size` to a batch. The other arguments as in evaluate_loss().
std::optional<std::vector<RowLoss>> losses_of_rows(
    nn::CausalLm& model, const data::TokenDataset& dataset, const std::vector<int64_t>& rows,
    int64_t batch_size, comm::Group& group, const std::function<bool()>& stop_requested,
    const std::function<void(int64_t)>& rows_done = {});

// Collective. Blocks. Rows are dealt round robin to ranks, `batch_size` to a batch, and summed in
// the order of the data set, so the figures are the same on every rank and for every number of
// ranks. Nothing is kept for backward. `stop_requested` (may be null) is called between batches:
// when it is true on any rank, every rank returns none, within about a second. `rows_done` (may be
// null) is called with the number of rows that this rank has finished.
std::optional<EvaluationFigures> evaluate_loss(nn::CausalLm& model,
                                               const data::TokenDataset& dataset,
                                               int64_t batch_size, comm::Group& group,
                                               const std::function<bool()>& stop_requested,
                                               const std::function<void(int64_t)>& rows_done = {});

}  // namespace convoy::train
