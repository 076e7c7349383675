// SPDX-License-Identifier: Apache-2.0
//
// Reads ProcessSettings from all sources: command line, environment, file, its includes, preset,
// default. Flags come last, over all of them.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/config/resolve.h"
#include "convoy/core/settings/process_flags.h"

namespace convoy::settings {

// `lists`: further flags of the command (they are read, too). Throws ConfigError with all that is
// wrong in the sources, then for the flags, then for what one key alone can not say.
config::Resolved resolve_process(ProcessSettings& settings, const config::Sources& sources,
                                 const std::vector<std::string>& flags = {},
                                 const std::vector<config::Section>& lists = {});

// Whether these sources are of `convoy process`: their `task` says so.
bool is_process_config(const config::Sources& sources);

}  // namespace convoy::settings
