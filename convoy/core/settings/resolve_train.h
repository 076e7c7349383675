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

// `sources.rules` is filled here. The errors are in the result.
TrainDocuments read_train_documents(config::Sources sources);

// Throws one ConfigError with all errors. `ranks`: number in the whole job, which decides batch
// sizes of other programs' files; 0 = unknown.
config::Resolved resolve_documents(TrainSettings& settings, TrainDocuments documents,
                                   Wanted wanted = Wanted::Anything, int64_t ranks = 0);

// Calls resolve_documents() with the result of read_train_documents().
config::Resolved resolve_train(TrainSettings& settings, config::Sources sources,
                               Wanted wanted = Wanted::Anything, int64_t ranks = 0);

// Rules for keys and values that have no field of their own.
const std::vector<config::KeyRule>& train_key_rules();

}  // namespace convoy::settings
