// SPDX-License-Identifier: Apache-2.0
//
// Compute threads of one rank.
#pragma once

#include <optional>
#include <string>

#include "convoy/core/base/other_work.h"

namespace convoy::device {

// The number that OMP_NUM_THREADS gives to this process: the user's, or that of --threads, which
// the front passes on in this variable. 0 = none.
int chosen_threads();

// Sets LibTorch's intra-op threads to the usable CPUs (affinity, cgroup quota) divided by the ranks
// of this host, at least 1, unless OMP_NUM_THREADS names a number for this process, which its
// `replicas` share. Returns the number set. Call once, before the first operator, on the thread of
// each rank.
int share_cpu_threads(int ranks_on_host, int replicas = 1);

// The threads of a process that computes alone, for work of a bounded length whose results do not
// depend on the number of threads: as many as there are cores that other work leaves free at the
// start. With more threads, each product waits for the thread that shares its core. The object
// watches other work from its construction on, while the model is read. A number that the user
// chose is kept.
//
// Training keeps its number, since the bits of a step may depend on it and a resumed run must
// repeat them. A server keeps its number, since it runs longer than the work that was busy when it
// started. Several ranks of one host keep theirs, since each sees the others as other work.
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
