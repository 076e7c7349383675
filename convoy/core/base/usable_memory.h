// SPDX-License-Identifier: Apache-2.0
//
// How much memory this process may still take.
#pragma once

#include <cstdint>

#include "convoy/core/base/cgroups.h"

namespace convoy {

// The smaller of what the machine has available and what the process's cgroups leave; a page that
// caches a file counts as free. 0 = unknown.
int64_t usable_memory_bytes(const KernelFolders& kernel = {});

}  // namespace convoy
