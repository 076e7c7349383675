// SPDX-License-Identifier: Apache-2.0
//
// The file that `accelerate config` writes: ranks and nodes for the launcher, precision, DeepSpeed
// and FSDP as settings.
#pragma once

#include "convoy/core/settings/deepspeed_file.h"
#include "convoy/core/settings/launch_request.h"

namespace convoy::settings {

// `value`: the value of our key `key`, which is the path of the file or its sections. Adds errors
// to the list; throws ConfigError for a file that cannot be read. If the file names a DeepSpeed
// file, returns the values of that file that are checked or decided later.
DeepSpeedFacts read_accelerate(const config::Node& value, const std::string& key,
                               LaunchRequest& launch_request, config::Imported& imported,
                               config::ErrorList& errors);

}  // namespace convoy::settings
