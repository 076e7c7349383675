// SPDX-License-Identifier: Apache-2.0
//
// Number of rows per step over all ranks: for the run itself, and for checks before there are any
// ranks.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/batches/epoch_order.h"

namespace convoy::data {

// Number of rows, or blocks, of one step on `ranks` ranks: global_batch_size when given, else
// batch_size x ranks x grad_accum. Throws ConfigError when all three settings are given and
// disagree.
int64_t wanted_global_batch(const settings::TrainingSettings& train, int64_t ranks);

// A sentence such as "effective batch: 8 rows per rank x 2 ranks x 4 accumulation = 64 a step".
// When the rows of a step cannot be divided evenly among the ranks, the sentence adds their
// distribution: "..., spread as 12 or 13 rows per rank". `unit`: the word for one item, "row".
std::string batch_sentence(const EpochOrderConfig& order, const std::string& unit);

// A warning when a step has fewer rows than there are ranks; else empty.
std::string idle_ranks_warning(const EpochOrderConfig& order, const std::string& unit);

}  // namespace convoy::data
