// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/profile/profiled_run.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "convoy/core/base/json_member.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "convoy/machine/profile/perfetto_trace.h"

namespace convoy::profile {
namespace {

namespace fs = std::filesystem;

// Speed: the mean tokens or samples of the logged steps, divided by the mean time of a traced step,
// which includes the time between steps.
void read_speed(const fs::path& events, ProfiledRun& run) {
  if (!fs::exists(events)) return;
  double units = 0, logged = 0;
  for (const auto& event : telemetry::read_events(events)) {
    if (member_or(event, "event", std::string()) != "step") continue;
    const int64_t step = member_or(event, "step", int64_t{0});
    if (step < run.breakdown.first_step || step > run.breakdown.last_step) continue;
    run.unit = event.contains("tokens") ? "tokens" : "samples";
    units +=
        static_cast<double>(member_or(event, run.unit == "tokens" ? "tokens" : "rows", int64_t{0}));
    ++logged;
  }
  if (logged > 0) run.units_per_second = units / logged / run.breakdown.mean().step_ms * 1e3;
}

Span whole_time(const std::vector<RankTrace>& traces) {
  Span time{.begin_ns = std::numeric_limits<int64_t>::max(), .end_ns = 0};
  for (const RankTrace& trace : traces)
    for (const NamedSpan& step : trace.steps) {
      time.begin_ns = std::min(time.begin_ns, step.span.begin_ns);
      time.end_ns = std::max(time.end_ns, step.span.end_ns);
    }
  return time;
}

}  // namespace

ProfiledRun read_profiled_run(const fs::path& run_folder) {
  ProfiledRun run{.name = run_folder.string(), .traces = read_rank_traces(run_folder)};
  align_clocks(run.traces);
  run.breakdown = break_down(run.traces);
  read_speed(run_folder / "events.jsonl", run);
  return run;
}

fs::path write_perfetto_trace(const ProfiledRun& run, fs::path file) {
  const fs::path folder = run.name;
  if (file.empty()) file = folder / "traces" / "run.perfetto-trace";
  write_file_atomic(file,
                    perfetto_trace(run.traces, read_device_counters(folder, run.traces.front().host,
                                                                    whole_time(run.traces))));
  return file;
}

}  // namespace convoy::profile
