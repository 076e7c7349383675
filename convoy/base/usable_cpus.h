// SPDX-License-Identifier: Apache-2.0
//
// How many CPUs this process may really use.
#pragma once

namespace convoy {

// The smaller of the affinity mask and the cgroup (v2 or v1) CPU quota rounded up; at least 1.
int usable_cpus();

}  // namespace convoy
