// SPDX-License-Identifier: Apache-2.0
//
// For people who come from torchrun, accelerate, DeepSpeed, mpirun or a project's own scripts and
// type its words here: what to type instead.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/config/flags.h"

namespace convoy::apps {

// For `convoy torchrun ARGUMENTS...`. Empty: neither a launcher nor a script nor a make target of
// that name is known.
std::string hint_for_command(const std::string& name, const std::vector<std::string>& arguments);

// For a flag as it was typed, with its dashes. Empty: it is not known from another launcher.
std::string hint_for_flag(const std::string& flag);

// config::parse_flags of a command that starts ranks: an unknown flag of another launcher is
// refused with that hint.
std::vector<std::string> parse_launcher_flags(
    const std::vector<config::Section>& lists, const std::vector<std::string>& arguments,
    config::Positionals positionals = config::Positionals::Anywhere);

}  // namespace convoy::apps
