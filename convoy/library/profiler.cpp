// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/profiler.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/ranks/step_trace.h"
#include "convoy/library/internal/group_internal.h"
#include "convoy/machine/device/device_clock.h"
#include "convoy/machine/profile/profiled_run.h"

namespace convoy {

struct PerformanceProfiler::State {
  std::shared_ptr<ProcessGroup> group;
  std::filesystem::path folder;
  std::unique_ptr<TraceClock> clock;  // clock of the group's device; nullptr: the host's
  telemetry::StepTrace trace;
  int64_t completed_steps = 0;

  telemetry::FlightWriter& flight() {
    return detail::GroupAccess::internal(*group).flight_record();
  }
};

PerformanceProfiler::PerformanceProfiler(std::shared_ptr<ProcessGroup> group,
                                         std::filesystem::path folder, const ProfiledSteps& steps) {
  if (steps.first < 1 || steps.count < 1)
    throw ConfigError(
        fmt::format("a profile needs at least one step from step 1 on, found {} from {} on",
                    steps.count, steps.first),
        {.hint = "such as {.first = 10, .count = 5}"});
  detail::required(group);
  std::unique_ptr<TraceClock> clock = device::make_device_clock(group->device());
  TraceClock* const of_device = clock.get();
  state_.reset(new State{.group = std::move(group),
                         .folder = std::move(folder),
                         .clock = std::move(clock),
                         .trace = telemetry::StepTrace(steps.count, steps.first, of_device)});
  if (state_->flight().traces())
    throw ConfigError("this group has a profiler already", {.hint = "end its life first"});
  state_->flight().trace_to(&state_->trace);
  state_->flight().set_step(0);
}

PerformanceProfiler::~PerformanceProfiler() { state_->flight().trace_to(nullptr); }

void PerformanceProfiler::phase(std::string_view name) { state_->flight().set_phase(name); }

void PerformanceProfiler::step() { state_->flight().set_step(++state_->completed_steps); }

std::string PerformanceProfiler::finish() {
  ProcessGroup& group = *state_->group;
  state_->flight().trace_to(nullptr);
  const std::vector<std::string> traces = group.all_gather_bytes(
      state_->trace.empty() ? ""
                            : state_->trace.chrome_json({.rank = group.rank(),
                                                         .world_size = group.size(),
                                                         .num_threads = at::get_num_threads()}));
  for (size_t rank = 0; rank < traces.size(); ++rank)
    if (traces[rank].empty())
      throw ConfigError(
          fmt::format("rank {} has done no step that was to be traced: it has done {} of them",
                      rank, state_->completed_steps),
          {.hint = "call finish() after the last of these steps, or trace earlier ones"});
  if (!group.is_leader()) return "";
  std::filesystem::create_directories(state_->folder / "traces");
  for (size_t rank = 0; rank < traces.size(); ++rank)
    write_file_atomic(state_->folder / "traces" / fmt::format("rank-{}.json", rank), traces[rank]);
  const profile::ProfiledRun run = profile::read_profiled_run(state_->folder);
  profile::write_perfetto_trace(run);
  return profile::report_text(run);
}

}  // namespace convoy
