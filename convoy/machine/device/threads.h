// SPDX-License-Identifier: Apache-2.0
//
// Compute threads of one rank.
#pragma once

#include <optional>
#include <string>

#include "convoy/core/base/other_work.h"

namespace convoy::device {

// The number in this process's OMP_NUM_THREADS: the user's, or the value of --threads, which the
// launching command passes on in this variable. 0 = none.
int chosen_threads();

// Sets LibTorch's intra-op threads to the usable CPUs (affinity, cgroup quota) divided by the ranks
// of this host, at least 1, unless OMP_NUM_THREADS names a number for this process; the `replicas`
// of the process then share that number. Returns the number set. Call once, before the first
// operator, on the thread of each rank.
int share_cpu_threads(int ranks_on_host, int replicas = 1);

// The threads of a process that computes alone, for work of a bounded length whose results do not
// depend on the number of threads: as many as there are cores that other work leaves free at the
// start. With more threads, each product would wait for the thread whose core is shared with other
// work. The object measures other work from its construction on, while the model is read. A number
// that the user chose is kept.
//
// Training keeps its number of threads, since the bits of a step may depend on the number and a
// resumed run must repeat them. A server keeps its number, since it runs longer than the other work
// that was measured at its start. Several ranks of one host keep their numbers, since each rank
// would count the other ranks as other work.
class FreeCoreThreads {
 public:
  explicit FreeCoreThreads(int ranks_on_host);

  // Call it once, on the thread of the constructor, when the model is loaded. Blocks until 50 ms
  // after the construction. Returns a sentence for the user; empty when the number is not reduced.
  std::string take();
  // Call it instead of take() for work that keeps its number. Returns only the sentence.
  std::string keep() const;

 private:
  std::optional<OtherWork> watch_;
};

// One sentence for a process that keeps its number of threads although other work takes their
// cores; empty where it does not. Blocks as OtherWork does.
std::string too_many_threads(const OtherWork& others);

}  // namespace convoy::device
