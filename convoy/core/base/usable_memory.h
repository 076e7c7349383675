// SPDX-License-Identifier: Apache-2.0
//
// Memory that this process may still allocate.
#pragma once

#include <cstdint>

#include "convoy/core/base/cgroups.h"

namespace convoy {

// The smaller of the machine's available memory and the rest of the process's cgroup limits, in
// bytes. Pages that cache files count as free. 0 = unknown.
int64_t usable_memory_bytes(const KernelFolders& kernel = {});

// The same for an idle machine: the smaller of its memory and the cgroup limits. 0 = unknown.
int64_t total_memory_bytes(const KernelFolders& kernel = {});

}  // namespace convoy
