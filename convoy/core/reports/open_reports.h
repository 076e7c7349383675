// SPDX-License-Identifier: Apache-2.0
//
// The reports of a training to other programs, by the names of logging.backend.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/reports/report_run.h"
#include "convoy/core/telemetry/logs/report_sink.h"

namespace convoy::reports {

// Opens trackio's and wandb's among `backends`, and says where they write and what reads it. Fills
// in run.id, and an empty run.project by TRACKIO_PROJECT or WANDB_PROJECT, else "convoy". A report
// that cannot be opened is left out with a warning: it never stops a run.
std::vector<std::unique_ptr<telemetry::ReportSink>> open_reports(
    const std::vector<std::string>& backends, const ReportRun& run, const Log& log);

}  // namespace convoy::reports
