// SPDX-License-Identifier: Apache-2.0
//
// Settings that decide the numbers of a stored sweep: the parameters of its cells, their guesses
// and the rule that ends them. They distinguish sweeps of one workload, and show which stored
// sweeps are parts of one.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "convoy/farm/sweep/runner/sweep_store.h"

namespace convoy::sweep {

// The distinct values of each setting by its name, without the grid and the command of a program.
std::map<std::string, std::set<nlohmann::json>> settings_of(jobs::JobStore& store,
                                                            const StoredSweep& sweep);

// A copy of the cell without three things: its seed, its values of the axes, and the parameters
// that depend on the seed.
PlannedCell without_place(const PlannedCell& planned, const Workload& workload);

}  // namespace convoy::sweep
