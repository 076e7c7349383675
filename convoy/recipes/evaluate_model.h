// SPDX-License-Identifier: Apache-2.0
//
// `convoy eval`: loss and perplexity over a data set, and with --generate how many answers are right.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "convoy/base/log.h"
#include "convoy/settings/command_flags.h"
#include "convoy/settings/train_settings.h"

namespace convoy::recipes {

// `settings`: of a config file, or built from `model` flags. Returns the figures, which are also
// written to metrics.json (and the answers to samples.jsonl) in flags.output_dir. `ranks`: as for
// RankShare; the figures are the same for every number of ranks, and null on all but the leading
// one. Throws convoy::Error.
nlohmann::json evaluate_model(const settings::TrainSettings& settings,
                              const settings::ModelFlags& model, const settings::EvalFlags& flags,
                              const settings::SamplingFlags& sampling,
                              const settings::EngineFlags& engine, const settings::RankFlags& ranks,
                              const Log& log);

// The text metrics alone, from saved predictions.
nlohmann::json evaluate_samples(const settings::EvalFlags& flags);

}  // namespace convoy::recipes
