// SPDX-License-Identifier: Apache-2.0
//
// Checks that the files for a training exist, before anything is started or written.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::apps {

// Looks for the model, the files of rows, the chat template, the adapter and what rewards name, and
// returns one error for each that is missing on this machine, with its key and what to do. It does
// not look at unset settings. Throws ConfigError for a reward's file, pattern or address that holds
// what the reward cannot take.
std::vector<DataError> missing_train_inputs(const settings::TrainSettings& train);

// Throws one DataError with all errors of missing_train_inputs().
void require_train_inputs(const settings::TrainSettings& train);

}  // namespace convoy::apps
