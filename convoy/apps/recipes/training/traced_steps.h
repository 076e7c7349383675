// SPDX-License-Identifier: Apache-2.0
//
// Implements logging.profile_steps for one rank's run.
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "convoy/core/base/log.h"
#include "convoy/core/base/trace_clock.h"
#include "convoy/core/settings/step_range.h"
#include "convoy/core/telemetry/ranks/flight_record_writer.h"
#include "convoy/core/telemetry/ranks/step_trace.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/train/comm/rank_environment.h"

namespace convoy::recipes {

// Identity of a rank, for its trace.
struct TracedPlace {
  const telemetry::RunFolder& folder;  // the run folder on the rank's node
  const comm::RankEnvironment& rank;
  c10::Device device;
};

class TracedSteps {
 public:
  // Traces the calls to `flight` during `steps` (none = no trace), and writes the trace into the
  // run folder after the last step. A trace that cannot be written causes a warning; the training
  // goes on. `flight` and the members of `place` must outlive this object, which must outlive the
  // groups that write to `flight`.
  TracedSteps(telemetry::FlightWriter& flight, const settings::StepRange& steps,
              const TracedPlace& place, const Log& log);
  ~TracedSteps();
  TracedSteps(const TracedSteps&) = delete;
  TracedSteps& operator=(const TracedSteps&) = delete;

  // Call it at the end of the training: writes the trace of an incomplete range of steps, with a
  // message.
  void finish();

 private:
  void write();

  telemetry::FlightWriter& flight_;
  const settings::StepRange steps_;
  const TracedPlace place_;
  const Log log_;
  const std::unique_ptr<TraceClock> clock_;  // device clock; null: the host's
  bool is_written_ = false;
  telemetry::StepTrace trace_;
};

}  // namespace convoy::recipes
