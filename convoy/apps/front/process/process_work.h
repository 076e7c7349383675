// SPDX-License-Identifier: Apache-2.0
//
// The workers of `convoy process` on this node, until no row is open.
#pragma once

#include "convoy/apps/front/process/process_ledger.h"
#include "convoy/farm/process/workers/row_supervisor.h"

namespace convoy::apps {

// Runs process::run_rows(). On the node that publishes, also records the progress of the rows and
// the use of the devices. Throws StopRequest when a stop was requested, after all finished texts
// are saved; else what process::run_rows() throws. Blocks.
process::RowSupervisorReport work_on_rows(const ProcessStart& start,
                                          const telemetry::RunFolder& folder,
                                          const ProcessLedger& ledger);

}  // namespace convoy::apps
