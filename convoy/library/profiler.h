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
// `convoy profile report profile` prints the same again, and beside a run on one rank where its
// efficiency went: `convoy profile report profile profile-of-one`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "convoy/library/process_group.h"

namespace convoy {

struct ProfiledSteps {
  int64_t first = 3;  // numbered from 1; the first steps of a program are not like the others
  int64_t count = 10;
};

// One per group. Driven by the thread that drives the group. Costs nothing outside the traced
// steps, and within them under 1 us a phase or collective, as finish() reports.
class PerformanceProfiler {
 public:
  // The group's collectives, and the collectives of the parts that split() makes, are traced from
  // here on. `folder` is for finish(). Throws ConfigError
  // for steps that cannot be, and for a group that has a profiler already.
  PerformanceProfiler(std::shared_ptr<ProcessGroup> group, std::filesystem::path folder,
                      const ProfiledSteps& steps = {});
  ~PerformanceProfiler();
  PerformanceProfiler(const PerformanceProfiler&) = delete;
  PerformanceProfiler& operator=(const PerformanceProfiler&) = delete;

  // Names the work from here on until the next phase or the end of the step. Any word; time in
  // "data" counts as waiting for data, in "evaluate" and "save" as such, in all others as
  // computing. On a GPU a phase is when the GPU is at its work, not when the host submits it.
  void phase(std::string_view name);
  // A step is done.
  void step();

  // Collective. Rank 0 writes traces/rank-N.json of all ranks into its folder, and
  // traces/run.perfetto-trace, which ui.perfetto.dev opens. Returns the report on rank 0, an empty
  // text elsewhere. Throws ConfigError when no traced step was done on every rank, IoError when the
  // folder cannot be written. Call it once, after the last step.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy
