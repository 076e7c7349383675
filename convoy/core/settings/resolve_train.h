// SPDX-License-Identifier: Apache-2.0
//
// Reads TrainSettings from all sources with the rules for SFT-Play's and Hugging Face's keys, and
// checks what one field alone cannot say. Used by every command that takes CONFIG.yaml, and by the
// worker on the resolved file.
#pragma once

#include "convoy/core/config/resolve.h"
#include "convoy/core/settings/train_imports.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::settings {

enum class Wanted {
  Anything,
  TrainInputs,  // the minimum for `convoy train`: a model and rows
};

// Throws one ConfigError with all errors. `sources.rules` is filled here. With `facts`, batch sizes
// of other programs' files are checked against its ranks, and the ranks in those files are added to
// it.
config::Resolved resolve_train(TrainSettings& settings, config::Sources sources,
                               Wanted wanted = Wanted::Anything, RankFacts* facts = nullptr);

// Rules for keys and values that have no field of their own.
const std::vector<config::KeyRule>& train_key_rules();

}  // namespace convoy::settings
