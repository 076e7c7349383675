// SPDX-License-Identifier: Apache-2.0
//
// The main function of a worker process that a runner starts. The process is `convoy sweep-worker`,
// or a user's own program.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "convoy/farm/sweep/workload.h"

namespace convoy::sweep {

// The environment variable that names the store for a worker. The worker's programs do not inherit
// it.
inline constexpr const char* kWorkerStoreVariable = "CONVOY_SWEEP_STORE";

// The values of the flags in the runner's worker_command().
struct WorkerFlags {
  std::string workload;
  std::string mode;
  std::vector<int64_t> groups;
  std::vector<int64_t> cells_per_claim;
  int64_t first_range = 1 << 16;
  int64_t max_attempts = 3;
  double timeout = 0;
  double lease = 60;
  bool notes = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("workload", workload, "what is computed");
    visit("mode", mode, "of the workload");
    visit("groups", groups, "numbers in the store");
    visit("cells_per_claim", cells_per_claim, "of each group");
    visit("first_range", first_range, "guesses").at_least(1);
    visit("max_attempts", max_attempts, "tries of a range").at_least(1);
    visit("timeout", timeout, "seconds a program may take; 0 = any").at_least(0);
    visit("lease", lease, "seconds").at_least(1);
    visit("notes", notes, "report progress");
  }
};

struct WorkerEquipment {
  std::unique_ptr<Workload> workload;
  std::string gpu;  // name of the GPU; empty = computes with the CPU
};

// Works until no task is open, or until a stop signal. Calls `make` after the signal handlers are
// installed. Blocks. Throws the errors of the store and of `make`.
void run_worker_process(const WorkerFlags& flags, const std::function<WorkerEquipment()>& make);

}  // namespace convoy::sweep
