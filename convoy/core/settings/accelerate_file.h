// SPDX-License-Identifier: Apache-2.0
//
// The file that `accelerate config` writes: ranks and nodes for the launcher, precision, DeepSpeed
// and FSDP as settings.
#pragma once

#include "convoy/core/settings/deepspeed_file.h"
#include "convoy/core/settings/launch_wishes.h"

namespace convoy::settings {

// `value`: the path of the file, or its sections, as `key` of ours has them. Adds what is wrong to
// the list; throws ConfigError for a file that can not be read. Returns what the DeepSpeed file
// that it names leaves to check.
DeepSpeedFacts read_accelerate(const config::Node& value, const std::string& key, int64_t ranks,
                               LaunchWishes& wishes, config::Imported& imported,
                               config::ErrorList& errors);

}  // namespace convoy::settings
