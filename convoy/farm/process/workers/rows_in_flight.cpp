// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/workers/rows_in_flight.h"

namespace convoy::process {

int64_t rows_in_flight(const settings::WorkerSettings& settings, scheduler::Hardware hardware) {
  return settings.batch_size.value.value_or(scheduler::engine_defaults(hardware).rows_in_flight);
}

int64_t texts_together(const settings::ProcessSettings& settings, int64_t rows,
                       scheduler::Hardware hardware) {
  if (!settings.engine.max_requests.is_auto()) return *settings.engine.max_requests.value;
  if (hardware == scheduler::Hardware::Gpu && settings.workers.batch_size.is_auto())
    return scheduler::engine_defaults(hardware).max_rows;
  return rows * settings.generate.n;
}

}  // namespace convoy::process
