// SPDX-License-Identifier: Apache-2.0
//
// `convoy eval --per-row`: negative log-likelihood of each row, with the masks of training.
#pragma once

#include "convoy/core/base/log.h"
#include "convoy/core/settings/command_flags.h"

namespace convoy::recipes {

// Writes {"index","nll","tokens"} per row, nll in nats summed over its supervised tokens, to
// flags.output or stdout. Never shuffles, drops or packs rows; the output file appears when it is
// complete. `ranks`: as for RankShare; the rows are equal for every number of ranks. Throws
// convoy::Error.
void score(const settings::ModelFlags& model, const settings::ScoreFlags& flags,
           const settings::RankFlags& ranks, const Log& log);

}  // namespace convoy::recipes
