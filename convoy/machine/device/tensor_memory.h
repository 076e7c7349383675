// SPDX-License-Identifier: Apache-2.0
//
// The memory of CPU tensors. The C library returns the large blocks of a step to the system and
// takes them again in the next step, which costs a page fault per page. This file keeps the blocks
// instead.
#pragma once

#include "convoy/machine/device/memory_block_pool.h"

namespace convoy::device {

// Makes LibTorch take memory for large CPU tensors from a MemoryBlockPool. Call once, before the
// first tensor; later calls do nothing. Thread-safe.
void keep_tensor_memory();

// Returns the kept memory of the pool to the system and forgets the peak of its use, so that the
// pool is as good as new.
void forget_kept_tensor_memory();

// Figures of that pool; zeros before keep_tensor_memory().
MemoryBlockPool::Figures tensor_memory();

}  // namespace convoy::device
