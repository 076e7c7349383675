// SPDX-License-Identifier: Apache-2.0
//
// The workers of `convoy process` on this node, until no row is open.
#pragma once

#include "convoy/apps/front/process/process_ledger.h"
#include "convoy/farm/process/workers/row_supervisor.h"

namespace convoy::apps {

// Also records their progress, on the node that publishes, and what its devices did. Throws
// StopRequest when a stop was requested, after all finished texts are saved; else as
// process::run_rows(). Blocks.
process::RowSupervisorReport work_on_rows(const ProcessStart& start,
                                          const telemetry::RunFolder& folder,
                                          const ProcessLedger& ledger);

}  // namespace convoy::apps
