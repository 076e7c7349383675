// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/traced_steps.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <filesystem>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/machine/device/device_clock.h"

namespace convoy::recipes {

TracedSteps::TracedSteps(telemetry::FlightWriter& flight, const settings::StepRange& steps,
                         const TracedPlace& place, const Log& log)
    : flight_(flight),
      steps_(steps),
      place_(place),
      log_(log),
      clock_(device::make_device_clock(place.device)),
      trace_(steps.num_steps, steps.first, clock_.get()) {
  if (steps.empty()) return;
  trace_.when_done([this] { write(); });
  flight_.trace_to(&trace_);
}

TracedSteps::~TracedSteps() { flight_.trace_to(nullptr); }

void TracedSteps::finish() {
  if (steps_.empty() || is_written_) return;
  const bool speaks = place_.rank.rank == 0;
  if (!trace_.empty()) {
    if (speaks)
      log_.warning(fmt::format("{} of {} steps were traced: the training ended before the others",
                               trace_.num_steps(), steps_.num_steps));
    write();
  } else if (!speaks) {
    return;
  } else if (steps_.first == 0) {
    log_.warning("no step was traced: a trace begins after two steps (logging.profile_steps)");
  } else {
    log_.warning(fmt::format("no step was traced: this training took none of steps {} to {}",
                             steps_.first, steps_.last()));
  }
}

void TracedSteps::write() {
  is_written_ = true;
  if (trace_.is_full())
    log_.warning(
        fmt::format("the trace is full with {} events: later ones are left out; trace "
                    "fewer steps (logging.profile_steps)",
                    telemetry::StepTrace::kMostEvents));
  const std::filesystem::path file = place_.folder.trace_file(place_.rank.rank);
  try {
    std::filesystem::create_directories(file.parent_path());
    write_file_atomic(file, trace_.chrome_json({.rank = place_.rank.rank,
                                                .world_size = place_.rank.world,
                                                .num_threads = at::get_num_threads()}));
    log_.info(fmt::format("steps traced: convoy profile report {}", place_.folder.path().string()));
  } catch (const std::filesystem::filesystem_error& error) {
    log_.warning(fmt::format("the trace is lost: {}", error.what()));
  } catch (const IoError& error) {
    log_.warning(fmt::format("the trace is lost: {}", error.sentence()));
  }
}

}  // namespace convoy::recipes
