// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/reports/open_reports.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/shell_word.h"
#include "convoy/core/reports/kept_reports.h"
#include "convoy/core/reports/trackio_report.h"
#include "convoy/core/reports/wandb_report.h"
#include "convoy/core/reports/wandb_variables.h"

namespace convoy::reports {
namespace {

namespace fs = std::filesystem;

using Sink = std::unique_ptr<telemetry::ReportSink>;

// The facts that all reports of one run share.
struct Opening {
  ReportRun run;
  KeptReports& kept;
  const Log& log;
};

void warn_of_idle_variables(const Opening& opening, const char* program,
                            const std::vector<std::string>& names, const std::string& instead) {
  std::vector<std::string> given;
  std::copy_if(names.begin(), names.end(), std::back_inserter(given), [](const std::string& name) {
    const std::string value = environment_text(name);
    return !value.empty() && value != "false";
  });
  if (!given.empty())
    opening.log.warning(
        fmt::format("{}: no effect here: {}; {}", program, fmt::join(given, ", "), instead));
}

// The place of the run's record: `wanted`, unless its former start has begun it elsewhere.
fs::path place_of(const Opening& opening, const std::string& program, const fs::path& wanted,
                  const std::function<bool(const fs::path&)>& has_run) {
  const fs::path former = opening.kept.text(program);
  if (former.empty() || former == wanted || has_run(wanted)) return wanted;
  const bool is_there = has_run(former);
  const int64_t step = opening.run.resume_step;
  if (step < 0) {
    if (is_there)
      opening.log.info(fmt::format("{}: the figures of the run's former start stay in {}", program,
                                   former.string()));
    return wanted;
  }
  if (is_there) {
    opening.log.warning(
        fmt::format("{}: the run goes on in {}, where its first steps are, not in {}: that is for "
                    "new run folders",
                    program, former.string(), wanted.string()));
    return former;
  }
  opening.log.warning(
      fmt::format("{}: {}, with the figures up to step {}, is gone; those of later steps go to {}",
                  program, former.string(), step, wanted.string()));
  return wanted;
}

Sink open_trackio(Opening opening) {
  ReportRun& run = opening.run;
  const fs::path wanted = fs::absolute(trackio_file(run.project));
  const fs::path file = place_of(opening, "trackio", wanted, [&](const fs::path& place) {
    return trackio_has_run(place, run.id);
  });
  if (file != wanted) run.project = file.stem().string();
  auto report = std::make_unique<TrackioReport>(file, run, opening.log);
  opening.kept.keep("trackio", file.string());
  const bool is_elsewhere = file.parent_path() != wanted.parent_path();
  opening.log.info(fmt::format(
      "trackio: run {} ({}) in {}; `{}trackio show --project {}` shows it", run.name, run.id,
      file.string(),
      is_elsewhere ? fmt::format("TRACKIO_DIR={} ", shell_word(file.parent_path().string())) : "",
      shell_word(run.project)));
  warn_of_idle_variables(
      opening, "trackio", {"TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL", "TRACKIO_BUCKET_ID"},
      fmt::format("`trackio sync --project {} --space-id USER/SPACE` uploads the figures",
                  shell_word(run.project)));
  return report;
}

Sink open_wandb(Opening opening) {
  if (const std::string reason = wandb_is_off(); !reason.empty()) {
    opening.log.info(fmt::format("wandb: no run is written: {}", reason));
    return nullptr;
  }
  ReportRun& run = opening.run;
  // The name that the environment gave once holds for the run's later starts too.
  if (const std::string name = wandb_variable("WANDB_NAME"); !name.empty())
    opening.kept.keep("wandb_name", name);
  if (const std::string name = opening.kept.text("wandb_name"); !name.empty()) run.name = name;
  const fs::path wanted = fs::absolute(wandb_folder(run.folder));
  const fs::path parent = place_of(opening, "wandb", wanted, [&](const fs::path& place) {
    return !find_wandb_log(place, run.id).empty();
  });
  auto report = std::make_unique<WandbReport>(parent, run, opening.log);
  opening.kept.keep("wandb", parent.string());
  if (report->project() != run.project)
    opening.log.warning(
        fmt::format("wandb: the run goes on in project {}, where its first steps are, not in {}: "
                    "that is for new run folders",
                    report->project(), run.project));
  opening.log.info(fmt::format("wandb: offline run {} of project {}; `wandb sync {}` uploads it",
                               run.name, report->project(), shell_word(report->folder().string())));
  if (const std::string mode = wandb_online_mode(); !mode.empty())
    opening.log.warning(fmt::format(
        "wandb: WANDB_MODE is {}, and the run is offline: nothing goes over a network here", mode));
  warn_of_idle_variables(opening, "wandb",
                         {"WANDB_RUN_ID", "WANDB_RESUME", "WANDB_WATCH", "WANDB_LOG_MODEL"},
                         "the run has its folder's id and holds figures alone");
  return report;
}

// Reads what the run has so far, and says it when its folder was renamed.
KeptReports kept_of(const ReportRun& run, const Log& log) {
  KeptReports kept(run.folder);
  const std::string former = kept.text("name");
  if (!former.empty() && former != run.name && run.resume_step >= 0)
    log.info(
        fmt::format("the run was {} in its reports; it is {} there from now on", former, run.name));
  kept.keep("name", run.name);
  return kept;
}

}  // namespace

std::vector<Sink> open_reports(const std::vector<ReportRequest>& wanted, const ReportRun& run,
                               const Log& log) {
  std::vector<Sink> reports;
  std::optional<KeptReports> kept;
  for (const auto& [program, open] :
       {std::pair<const char*, Sink (*)(Opening)>{"trackio", open_trackio},
        {"wandb", open_wandb}}) {
    const auto request = std::find_if(
        wanted.begin(), wanted.end(),
        [name = std::string(program)](const auto& one) { return one.program == name; });
    if (request == wanted.end()) continue;
    try {
      if (!kept) kept = kept_of(run, log);
      Opening opening{.run = run, .kept = *kept, .log = log};
      opening.run.id = kept->id();
      opening.run.project = request->project;
      if (Sink report = open(std::move(opening))) reports.push_back(std::move(report));
    } catch (const Error& error) {
      log.warning(fmt::format("no report to {}: {}", program, error.sentence()));
    }
  }
  return reports;
}

}  // namespace convoy::reports
