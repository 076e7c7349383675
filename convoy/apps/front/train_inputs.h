// SPDX-License-Identifier: Apache-2.0
//
// The files that a training reads, looked for before anything is started or written.
#pragma once

#include <string>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/settings/train_settings.h"

namespace convoy::apps {

// What the settings name and this machine does not have: the model, files of rows, a chat template, an adapter. Each with
// its key and what to do. Unset settings are not looked at.
std::vector<DataError> missing_train_inputs(const settings::TrainSettings& train);

// Throws one DataError with all of them.
void require_train_inputs(const settings::TrainSettings& train);

}  // namespace convoy::apps
