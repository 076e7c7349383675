// SPDX-License-Identifier: Apache-2.0
//
// Reads TrainSettings from all sources with the rules for SFT-Play's and Hugging Face's keys, and checks what one field
// alone cannot say. Used by every command that takes CONFIG.yaml, and by the worker on the resolved file.
#pragma once

#include "convoy/config/resolve.h"
#include "convoy/settings/train_settings.h"

namespace convoy::settings {

// Throws ConfigError. `sources.rules` is filled here.
config::Resolved resolve_train(TrainSettings& settings, config::Sources sources);

// What `convoy train` cannot do without: a model and rows. Throws ConfigError.
void require_train_inputs(const TrainSettings& settings);

// What becomes of keys and values that have no field of their own.
const std::vector<config::KeyRule>& train_key_rules();

}  // namespace convoy::settings
