// SPDX-License-Identifier: Apache-2.0
//
// Shows where the time of a program's steps goes: computing, collectives, data, the rest.
//
//   convoy::PerformanceProfiler profiler(group, "profile");
//   for (...) {
//     profiler.phase("data");
//     ...
//     profiler.phase("forward");
//     ...
//     profiler.step();
//   }
//   std::fputs(profiler.finish().c_str(), stdout);
//
// `convoy profile report profile` prints the same report again. With the folder of a run on one
// rank it also shows where the efficiency was lost: `convoy profile report profile profile-of-one`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "convoy/library/process_group.h"

namespace convoy {

struct ProfiledSteps {
  int64_t first = 3;  // counted from 1; the first steps of a program are slower
  int64_t count = 10;
};

// One per group. Use it on the thread that uses the group. It costs nothing outside the traced
// steps. Within them it costs less than 1 us per phase or collective; finish() reports the cost.
class PerformanceProfiler {
 public:
  // Traces the collectives of the group, and of the parts that split() makes, from here on.
  // `folder`: the output folder of finish(). Throws ConfigError for impossible steps, and for a
  // group that has a profiler already.
  PerformanceProfiler(std::shared_ptr<ProcessGroup> group, std::filesystem::path folder,
                      const ProfiledSteps& steps = {});
  ~PerformanceProfiler();
  PerformanceProfiler(const PerformanceProfiler&) = delete;
  PerformanceProfiler& operator=(const PerformanceProfiler&) = delete;

  // Names the work from here on until the next phase or the end of the step. `name` is any word.
  // Time in "data" counts as waiting for data, time in "evaluate" and "save" as such, and all other
  // time as computing. On a GPU a phase lasts while the GPU does the work, not while the host
  // submits it.
  void phase(std::string_view name);
  // Ends a step.
  void step();

  // Collective. Rank 0 writes the traces of all ranks into its folder: traces/rank-N.json for each
  // rank, and traces/run.perfetto-trace, which ui.perfetto.dev opens. Returns the report on rank 0,
  // and an empty text on all other ranks. Throws ConfigError when no traced step was completed on
  // every rank, IoError when the folder cannot be written. Call it once, after the last step.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy
