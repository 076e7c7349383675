// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/reports/open_reports.h"

#include <algorithm>
#include <utility>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/shell_word.h"
#include "convoy/core/reports/trackio_report.h"
#include "convoy/core/reports/wandb_report.h"

namespace convoy::reports {
namespace {

std::string project_of(const ReportRun& run, const char* variable) {
  if (!run.project.empty()) return run.project;
  const std::string named = environment_text(variable);
  return named.empty() ? "convoy" : named;
}

std::unique_ptr<telemetry::ReportSink> open_trackio(ReportRun run, const Log& log) {
  run.project = project_of(run, "TRACKIO_PROJECT");
  const std::filesystem::path file = trackio_file(run.project);
  auto report = std::make_unique<TrackioReport>(file, run, log);
  log.info(fmt::format("trackio: run {} ({}) in {}; `trackio show --project {}` shows it", run.name,
                       run.id, file.string(), shell_word(run.project)));
  return report;
}

std::unique_ptr<telemetry::ReportSink> open_wandb(ReportRun run, const Log& log) {
  run.project = project_of(run, "WANDB_PROJECT");
  auto report = std::make_unique<WandbReport>(wandb_folder(run.folder), run, log);
  log.info(fmt::format("wandb: offline run {} of project {}; `wandb sync {}` uploads it", run.name,
                       run.project, shell_word(report->folder().string())));
  return report;
}

}  // namespace

std::vector<std::unique_ptr<telemetry::ReportSink>> open_reports(
    const std::vector<std::string>& backends, const ReportRun& run, const Log& log) {
  using Open = std::unique_ptr<telemetry::ReportSink> (*)(ReportRun, const Log&);
  std::vector<std::unique_ptr<telemetry::ReportSink>> reports;
  ReportRun named = run;
  for (const auto& [name, open] :
       {std::pair<const char*, Open>{"trackio", open_trackio}, {"wandb", open_wandb}}) {
    if (std::find(backends.begin(), backends.end(), name) == backends.end()) continue;
    try {
      if (named.id.empty()) named.id = report_id(run.folder);
      reports.push_back(open(named, log));
    } catch (const Error& error) {
      log.warning(fmt::format("no report to {}: {}", name, error.sentence()));
    }
  }
  return reports;
}

}  // namespace convoy::reports
