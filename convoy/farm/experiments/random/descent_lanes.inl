// SPDX-License-Identifier: Apache-2.0
//
// Vectors of eight doubles, for functions of which the loader chooses a version per CPU:
// CONVOY_CLONES marks such a function, CONVOY_INLINE marks the functions that it calls.

#undef CONVOY_CLONES
#undef CONVOY_INLINE
#if defined(__x86_64__)
#define CONVOY_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CONVOY_CLONES
#endif
#define CONVOY_INLINE inline __attribute__((always_inline))

using Doubles = double __attribute__((vector_size(64)));
