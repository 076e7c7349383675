// SPDX-License-Identifier: Apache-2.0
//
// The memory of CPU tensors. The C library returns a step's large blocks to the system and takes
// them again in the next step, page fault by page fault; here they are kept.
#pragma once

#include "convoy/machine/device/memory_block_pool.h"

namespace convoy::device {

// Makes LibTorch take memory for large CPU tensors from a MemoryBlockPool. Call once, before the
// first tensor; later calls do nothing. Thread-safe.
void keep_tensor_memory();

// Returns what the pool keeps to the system and forgets the peak of its use: from here on it keeps
// memory as if it were new.
void forget_kept_tensor_memory();

// Figures of that pool; zeros before keep_tensor_memory().
MemoryBlockPool::Figures tensor_memory();

}  // namespace convoy::device
