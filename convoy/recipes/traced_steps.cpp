// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/traced_steps.h"

#include <fmt/format.h>

#include <filesystem>

#include "convoy/base/files.h"

namespace convoy::recipes {

TracedSteps::TracedSteps(telemetry::FlightWriter& flight, int64_t num_steps)
    : flight_(flight), num_steps_(num_steps), trace_(num_steps) {
  if (num_steps > 0) flight_.trace_to(&trace_);
}

TracedSteps::~TracedSteps() { flight_.trace_to(nullptr); }

void TracedSteps::write(const telemetry::RunFolder& folder, int rank, const Log& log) const {
  if (num_steps_ == 0) return;
  if (trace_.empty()) {
    log.warning("no step was traced: a trace begins after two steps (logging.trace_steps)");
    return;
  }
  const std::filesystem::path file = folder.trace_file(rank);
  std::filesystem::create_directories(file.parent_path());
  write_file_atomic(file, trace_.chrome_json(rank));
  log.info(fmt::format("traces written to {}: open them in ui.perfetto.dev",
                       file.parent_path().string()));
}

}  // namespace convoy::recipes
