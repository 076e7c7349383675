// SPDX-License-Identifier: Apache-2.0
//
// The variables of wandb's client that a run here follows.
#pragma once

#include <string>

namespace convoy::reports {

// The variable's text; empty when it is not set. Throws ConfigError when it is not UTF-8, which
// wandb could not read.
std::string wandb_variable(const std::string& name);

// Why the environment wants no run: "WANDB_MODE is disabled"; empty when it wants one. Throws
// ConfigError for a mode that wandb does not have.
std::string wandb_is_off();

// "online" and its like if WANDB_MODE asks for a run that is uploaded meanwhile, else empty.
std::string wandb_online_mode();

// Members of wandb's RunRecord: entity, group, job type, notes and tags.
std::string wandb_run_members();

}  // namespace convoy::reports
