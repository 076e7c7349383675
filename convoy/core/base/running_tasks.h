// SPDX-License-Identifier: Apache-2.0
//
// Tells whether a host has other work beside this process, at one moment and without a sample. Only
// for choices that affect nothing but speed.
#pragma once

#include <string>

namespace convoy {

// True when `loadavg`, the text of /proc/loadavg, counts tasks beside this one that could keep at
// least half of `cpus` busy. False where it cannot be read.
bool counts_other_tasks(const std::string& loadavg, int cpus);

// The same for this host now.
bool host_runs_other_tasks();

}  // namespace convoy
