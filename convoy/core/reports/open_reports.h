// SPDX-License-Identifier: Apache-2.0
//
// The reports of a training to other programs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/reports/report_run.h"
#include "convoy/core/telemetry/logs/report_sink.h"

namespace convoy::reports {

struct ReportRequest {
  std::string program;  // trackio or wandb; others are left out
  std::string project;  // UTF-8
};

// Opens the reports, and says where they write and what reads it. Fills in run.id and run.project.
// A resumed run goes on where it was begun, whatever the request and the environment name now, with
// a warning. A report that cannot be opened is left out with a warning: it never stops a run.
std::vector<std::unique_ptr<telemetry::ReportSink>> open_reports(
    const std::vector<ReportRequest>& wanted, const ReportRun& run, const Log& log);

}  // namespace convoy::reports
