// SPDX-License-Identifier: Apache-2.0
//
// Reads ProcessSettings from all sources: command line, environment, file, its includes, preset,
// default. Flags override all of these sources.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/config/resolve.h"
#include "convoy/core/settings/process_flags.h"

namespace convoy::settings {

// Settings that flags give. A flag overrides the other sources even if its value is the default.
struct ProcessFlagValues {
  ProcessSettings settings;
  std::vector<std::string> names;  // fields of process_flag_list() that were given
};

// Throws ConfigError with all errors of the sources, then of combinations of keys.
config::Resolved resolve_process(ProcessSettings& settings, const config::Sources& sources,
                                 ProcessFlagValues flags = {});

// True when these sources configure `convoy process`, by their `task`.
bool is_process_config(const config::Sources& sources);

}  // namespace convoy::settings
