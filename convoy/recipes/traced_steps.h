// SPDX-License-Identifier: Apache-2.0
//
// logging.profile_steps of one rank's run.
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "convoy/base/log.h"
#include "convoy/base/trace_clock.h"
#include "convoy/comm/environment.h"
#include "convoy/settings/step_range.h"
#include "convoy/telemetry/flight_record_writer.h"
#include "convoy/telemetry/run_folder.h"
#include "convoy/telemetry/step_trace.h"

namespace convoy::recipes {

class TracedSteps {
 public:
  // Traces what `flight` is told in `steps`, unless those are none. Both outlive the groups that write to it.
  TracedSteps(telemetry::FlightWriter& flight, const settings::StepRange& steps, at::Device device);
  ~TracedSteps();
  TracedSteps(const TracedSteps&) = delete;
  TracedSteps& operator=(const TracedSteps&) = delete;

  // Into the run folder of this rank's node. Throws IoError.
  void write(const telemetry::RunFolder& folder, const comm::RankEnvironment& place,
             const Log& log) const;

 private:
  telemetry::FlightWriter& flight_;
  const settings::StepRange steps_;
  const std::unique_ptr<TraceClock> clock_;  // of the device; null: the host's
  telemetry::StepTrace trace_;
};

}  // namespace convoy::recipes
