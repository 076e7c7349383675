// SPDX-License-Identifier: Apache-2.0
//
// Loss of a model over a data set, shared between ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "convoy/comm/group.h"
#include "convoy/data/token_dataset.h"
#include "convoy/nn/causal_lm.h"

namespace convoy::train {

struct EvaluationFigures {
  double nll_sum = 0;  // nats over supervised tokens
  int64_t supervised_tokens = 0;
  int64_t correct_tokens = 0;  // the target was the most likely token
  int64_t rows = 0;
  double seconds = 0;

  double loss() const {
    return nll_sum / static_cast<double>(supervised_tokens > 0 ? supervised_tokens : 1);
  }
  double perplexity() const;
  double token_accuracy() const;
};

// Collective. Blocks. Rows are dealt round robin to ranks, `batch_size` to a batch; every rank returns the same figures.
// Nothing is kept for backward. `stop_requested` (may be null) is asked between batches: when any rank's says so, every
// rank returns none, within about a second.
std::optional<EvaluationFigures> evaluate_loss(nn::CausalLm& model,
                                               const data::TokenDataset& dataset,
                                               int64_t batch_size, comm::Group& group,
                                               const std::function<bool()>& stop_requested);

}  // namespace convoy::train
