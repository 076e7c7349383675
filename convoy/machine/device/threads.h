// SPDX-License-Identifier: Apache-2.0
//
// Compute threads of one rank.
#pragma once

namespace convoy::device {

// Sets LibTorch's intra-op threads to the usable CPUs (affinity, cgroup quota) divided by the ranks
// of this host, at least 1, unless OMP_NUM_THREADS names a number for this process, which its
// `replicas` share. Returns the number set. Call once, before the first operator, on the thread of
// each rank.
int share_cpu_threads(int ranks_on_host, int replicas = 1);

}  // namespace convoy::device
