// SPDX-License-Identifier: Apache-2.0
//
// logging.profile_steps of one rank's run.
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "convoy/core/base/log.h"
#include "convoy/core/base/trace_clock.h"
#include "convoy/core/settings/step_range.h"
#include "convoy/core/telemetry/flight_record_writer.h"
#include "convoy/core/telemetry/run_folder.h"
#include "convoy/core/telemetry/step_trace.h"
#include "convoy/train/comm/environment.h"

namespace convoy::recipes {

// What a rank is, for its trace.
struct TracedPlace {
  const telemetry::RunFolder& folder;  // of its node
  const comm::RankEnvironment& rank;
  c10::Device device;
};

class TracedSteps {
 public:
  // Traces what `flight` is told in `steps`, unless those are none, and writes the trace into the
  // run folder when they are done. A trace that cannot be written is warned of: the training goes
  // on. `flight` and what `place` names outlive this; this outlives the groups that write to
  // `flight`.
  TracedSteps(telemetry::FlightWriter& flight, const settings::StepRange& steps,
              const TracedPlace& place, const Log& log);
  ~TracedSteps();
  TracedSteps(const TracedSteps&) = delete;
  TracedSteps& operator=(const TracedSteps&) = delete;

  // The training is over: what was traced of steps that did not all come is written, and said.
  void finish();

 private:
  void write();

  telemetry::FlightWriter& flight_;
  const settings::StepRange steps_;
  const TracedPlace place_;
  const Log log_;
  const std::unique_ptr<TraceClock> clock_;  // of the device; null: the host's
  bool is_written_ = false;
  telemetry::StepTrace trace_;
};

}  // namespace convoy::recipes
