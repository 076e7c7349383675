// SPDX-License-Identifier: Apache-2.0
//
// Resolves CONFIG.yaml [key=value ...] in the same way for every command: with the file, the
// presets of this build, and the environment of this process.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/resolve_train.h"

namespace convoy::apps {

// `arguments`: at most one file, then key=value. Throws ConfigError for a second file.
config::Sources config_sources(const std::vector<std::string>& arguments,
                               const std::string& preset);

// Like settings::resolve_documents(). Notices and warnings go to the log.
config::Resolved resolve_logged(settings::TrainSettings& train,
                                const settings::TrainDocuments& documents, const Log& log,
                                settings::Wanted wanted = settings::Wanted::Anything,
                                int64_t ranks = 0);

// Reads the sources in `arguments` and `preset`, and calls resolve_logged(). Throws ConfigError.
config::Resolved read_train_config(settings::TrainSettings& train,
                                   const std::vector<std::string>& arguments,
                                   const std::string& preset, const Log& log,
                                   settings::Wanted wanted = settings::Wanted::Anything);

// Throws ConfigError for `task: rejection`, whose rows are made by its rounds alone.
void refuse_problems(const settings::TrainSettings& train);

// "run.yaml" for "CONFIG=run.yaml", as SFT-Play's make targets name the file; any other word
// unchanged.
std::string without_config_name(std::string word);

// The setting that a user meant by a flag: "train.batch_size" for "--batch-size=4". Empty = none.
std::string setting_of_flag(const std::string& flag);

// Returns the text of docs/reference/config.md.
std::string train_config_markdown();

}  // namespace convoy::apps
