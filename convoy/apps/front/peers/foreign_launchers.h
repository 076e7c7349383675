// SPDX-License-Identifier: Apache-2.0
//
// Hints for users of torchrun, accelerate, DeepSpeed, mpirun or a project's own scripts who type
// those commands: the Convoy command to type instead.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/config/flags.h"

namespace convoy::apps {

// The hint for `convoy torchrun ARGUMENTS...`. Empty when no launcher, script or make target of
// that name is known.
std::string hint_for_command(const std::string& name, const std::vector<std::string>& arguments);

// The hint for a flag as it was typed, with its dashes. Empty when no known launcher has it.
std::string hint_for_flag(const std::string& flag);

// config::parse_flags for a command that starts ranks: an unknown flag of another launcher is
// refused with its hint.
std::vector<std::string> parse_launcher_flags(
    const std::vector<config::Section>& lists, const std::vector<std::string>& arguments,
    config::Positionals positionals = config::Positionals::Anywhere);

}  // namespace convoy::apps
