// SPDX-License-Identifier: Apache-2.0
//
// `convoy eval`: loss and perplexity over a data set, and with --generate metrics of its answers.
#pragma once

#include <nlohmann/json.hpp>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/core/settings/worker_calls.h"

namespace convoy::recipes {

struct EvaluateRun : settings::EvalCall {
  settings::TrainSettings settings = {};  // from a config file, or built from `model`
  settings::RankFlags ranks = {};         // passed to RankShare
};

// Returns the results, which are also written to metrics.json (and the answers to samples.jsonl) in
// flags.output_dir. They are equal for every number of ranks, and null on all but the leading rank.
// Throws convoy::Error.
nlohmann::json evaluate_model(const EvaluateRun& run, const Log& log);

}  // namespace convoy::recipes
