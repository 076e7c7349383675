// SPDX-License-Identifier: Apache-2.0
//
// `convoy eval`: loss and perplexity over a data set, and with --generate metrics of its answers.
#pragma once

#include <nlohmann/json.hpp>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/core/settings/metric_settings.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::recipes {

struct EvaluateRun {
  settings::TrainSettings settings = {};  // from a config file, or built from `model`
  settings::ModelFlags model = {};
  settings::EvalFlags flags = {};
  settings::MetricFlags metrics = {};
  settings::SamplingFlags sampling = {};
  settings::EngineFlags engine = {};
  settings::RankFlags ranks = {};  // as for RankShare
};

// Returns the results, which are also written to metrics.json (and the answers to samples.jsonl) in
// flags.output_dir. They are equal for every number of ranks, and null on all but the leading rank.
// Throws convoy::Error.
nlohmann::json evaluate_model(const EvaluateRun& run, const Log& log);

}  // namespace convoy::recipes
