// SPDX-License-Identifier: Apache-2.0
//
// The request to `convoy process`: configuration and flags combined.
#pragma once

#include <string>
#include <vector>

#include "convoy/apps/front/command.h"
#include "convoy/core/settings/resolve_process.h"

namespace convoy::apps {

struct ProcessConfig {
  settings::ProcessSettings settings;
  settings::ProcessCommandFlags flags;
  // Points into `settings`.
  config::Resolved resolved{{}, {}, {}, true};
};

// `arguments`: at most one file, key=value, and flags. Also sets `context.common`. Throws
// ConfigError.
void read_process_config(Context& context, const std::vector<std::string>& arguments,
                         ProcessConfig& config);

// One group per section of the settings, then the flags that are no settings.
std::vector<FlagGroup> process_flag_groups();

// The part of docs/reference/config.md about the settings of `convoy process`.
std::string process_config_markdown();

}  // namespace convoy::apps
