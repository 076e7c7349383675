// SPDX-License-Identifier: Apache-2.0
//
// The sweeps of a store, for `convoy sweep show --list`.
#pragma once

#include <string>

#include "convoy/apps/front/command.h"
#include "convoy/farm/sweep/runner/read_sweep.h"

namespace convoy::apps {

// Reads the sweep. Returns the reason when it cannot be read (newer Convoy, damage); empty on
// success.
std::string read_if_possible(jobs::JobStore& store, const sweep::SweepName& name,
                             sweep::SweepResults& results);

// Prints the store's sweeps, the last run at the end, with the settings in which sweeps of one
// workload differ. Returns the exit code.
int list_sweeps(const Context& context, jobs::JobStore& store);

}  // namespace convoy::apps
