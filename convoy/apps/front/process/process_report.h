// SPDX-License-Identifier: Apache-2.0
//
// The end of a run of `convoy process`: its files, its report, and the error when no row has a
// text.
#pragma once

#include <nlohmann/json.hpp>

#include "convoy/apps/front/process/process_ledger.h"
#include "convoy/farm/process/results/publish_rows.h"
#include "convoy/farm/process/results/run_report.h"

namespace convoy::apps {

struct ProcessResult {
  nlohmann::ordered_json report = nullptr;  // null: another node publishes
  process::RunReport rows = {};             // the rows that this node published
};

// Writes manifest, metrics and the last event, and says which files were written.
ProcessResult conclude_process(const ProcessStart& start, const telemetry::RunFolder& folder,
                               const process::RowRun& run, const process::Publication& done,
                               const process::StartFigures& figures);

// Prints the report on the node that publishes. Does nothing on other nodes.
void print_process_report(const Context& context, const ProcessResult& result);

// Throws when no row has a text.
void require_texts(const ProcessStart& start, const process::RunReport& rows);

}  // namespace convoy::apps
