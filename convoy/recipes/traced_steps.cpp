// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/traced_steps.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <filesystem>

#include "convoy/base/files.h"
#include "convoy/device/device_clock.h"

namespace convoy::recipes {

TracedSteps::TracedSteps(telemetry::FlightWriter& flight, const settings::StepRange& steps,
                         at::Device device)
    : flight_(flight),
      steps_(steps),
      clock_(device::make_device_clock(device)),
      trace_(steps.num_steps, steps.first, clock_.get()) {
  if (!steps.empty()) flight_.trace_to(&trace_);
}

TracedSteps::~TracedSteps() { flight_.trace_to(nullptr); }

void TracedSteps::write(const telemetry::RunFolder& folder, const comm::RankEnvironment& place,
                        const Log& log) const {
  if (steps_.empty()) return;
  if (trace_.empty()) {
    log.warning(steps_.first == 0
                    ? "no step was traced: a trace begins after two steps (logging.profile_steps)"
                    : fmt::format("no step was traced: steps {} to {} are not of this run",
                                  steps_.first, steps_.last()));
    return;
  }
  if (trace_.is_full())
    log.warning(
        fmt::format("the trace is full with {} events: later ones are left out; trace "
                    "fewer steps (logging.profile_steps)",
                    telemetry::StepTrace::kMostEvents));
  const std::filesystem::path file = folder.trace_file(place.rank);
  std::filesystem::create_directories(file.parent_path());
  write_file_atomic(file, trace_.chrome_json({.rank = place.rank,
                                              .world_size = place.world,
                                              .num_threads = at::get_num_threads()}));
  log.info(fmt::format("traces written to {}: convoy profile report {}",
                       file.parent_path().string(), folder.path().string()));
}

}  // namespace convoy::recipes
