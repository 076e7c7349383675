// SPDX-License-Identifier: Apache-2.0
//
// The few features of CUDA's language that the kernels use, declared for clang without CUDA's
// headers.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CONVOY_DEVICE __attribute__((device)) inline __attribute__((always_inline))
#define CONVOY_KERNEL extern "C" __attribute__((global))
#define CONVOY_SHARED __attribute__((shared)) static

namespace convoy::nvidia {

CONVOY_DEVICE uint32_t thread_number() {
  return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() +
         __nvvm_read_ptx_sreg_tid_x();
}
CONVOY_DEVICE uint32_t thread_of_block() { return __nvvm_read_ptx_sreg_tid_x(); }
CONVOY_DEVICE uint32_t num_threads() {
  return __nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x();
}
CONVOY_DEVICE uint32_t num_blocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }
CONVOY_DEVICE uint32_t block_number() { return __nvvm_read_ptx_sreg_ctaid_x(); }

// Waits for all threads of the block. Afterwards each thread sees what the others wrote before.
CONVOY_DEVICE void wait_for_block() { __syncthreads(); }

// Waits until the kernels before this one in its stream have ended and their writes are visible. A
// kernel that does not call it waits at its beginning. Before the call, a kernel may read only
// memory that was written before the last kernel or copy of the stream that did not start early,
// because several kernels that start early may run up to this call at the same time. So it must not
// read what any kernel of Convoy writes. All threads call it, once.
CONVOY_DEVICE void wait_for_kernels_before() {
  asm volatile(".pragma \"kernels before\";" ::: "memory");
}

// Returns the old value. There is no order with other memory accesses.
CONVOY_DEVICE uint32_t atomic_add(uint32_t* to, uint32_t value) {
  return __nvvm_atom_add_gen_i(reinterpret_cast<volatile int*>(to), static_cast<int>(value));
}
CONVOY_DEVICE void atomic_add(uint64_t* to, uint64_t value) {
  __nvvm_atom_add_gen_ll(reinterpret_cast<volatile long long*>(to), static_cast<long long>(value));
}

}  // namespace convoy::nvidia
