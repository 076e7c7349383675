// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_report.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "convoy/apps/front/process/process_preview.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "convoy/data/datasets/manifest.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Result of the last start that finished rows, for later starts that have nothing to do.
fs::path last_start_file(const process::RowRun& run) { return run.folder / "last_start.json"; }

// Returns null when no earlier start finished rows.
Json last_start(const process::RowRun& run) {
  if (!fs::exists(last_start_file(run))) return nullptr;
  const Json start = Json::parse(read_file(last_start_file(run)), nullptr, false);
  return start.is_object() ? start : Json(nullptr);
}

// A start without work has no speed, so its report takes the speed of the last start with work.
void settle_last_start(const process::RowRun& run, Json& report) {
  if (report["last_start"].is_null())
    report["last_start"] = last_start(run);
  else
    write_file_atomic(last_start_file(run), report["last_start"].dump());
}

Json report_of(const ProcessStart& start, const process::RowRun& run,
               const process::Publication& done, const process::StartFigures& figures) {
  Json report = done.report.json(figures, estimate_run(start.prepared.plan(), run.rows));
  if (!done.training_rows.is_null()) report["training_rows"] = done.training_rows;
  settle_last_start(run, report);
  return report;
}

data::Manifest manifest_of(const ProcessStart& start, const process::Publication& done) {
  data::Manifest manifest{.outputs = done.files,
                          .rows_by_state = done.report.rows_by_state(),
                          .configuration = start.prepared.content(),
                          .cost = done.report.cost()};
  manifest.configuration["filter"] = {{"keep", start.settings().filter.keep.names}};
  settings::ProcessSettings listed = start.settings();
  const nlohmann::json sections = config::dump_json(config::list_fields(listed));
  for (const auto& [section, counts] : done.training_rows.items())
    manifest.configuration[section] = sections.at(section);
  for (const fs::path& file : start.prepared.dataset->files)
    manifest.inputs.push_back(data::record_of_file(file));
  return manifest;
}

}  // namespace

ProcessResult conclude_process(const ProcessStart& start, const telemetry::RunFolder& folder,
                               const process::RowRun& run, const process::Publication& done,
                               const process::StartFigures& figures) {
  const Log log = start.log();
  const Json report = report_of(start, run, done, figures);
  const fs::path manifest =
      data::publish_manifest(start.settings().output.path, manifest_of(start, done));
  folder.write_metrics({{"process", report}});
  telemetry::EventLog(folder.events_path(), log)
      .append(telemetry::EventKind::End, {{"status", "finished"}});
  for (const data::FileRecord& file : done.files)
    log.info(fmt::format("wrote {} ({})", file.path, counted(file.rows, "row")));
  log.info(fmt::format("wrote {}", manifest.string()));
  return {.report = report, .rows = done.report};
}

void print_process_report(const Context& context, const ProcessResult& result) {
  if (result.report.is_null()) return;
  if (context.common.json)
    fmt::print("{}\n", result.report.dump(2));
  else
    for (const std::string& line : process::report_lines(result.report)) fmt::print("{}\n", line);
}

void require_texts(const ProcessStart& start, const process::RunReport& rows) {
  if (!rows.all_failed()) return;
  const Json failures = rows.failures();
  const std::string reason = failures.at("most_common");
  const std::string message =
      fmt::format("none of {} has a text; most often: {}",
                  counted(failures.at("rows").get<int64_t>(), "row"), reason);
  if (!rows.rows_by_state().contains("engine_error"))
    throw DataError(message, {.file = start.prepared.dataset->files.front().string(),
                              .hint = "--problem-field names the column of the problem"});
  throw ProgressError(message, {.hint = "the same command computes these rows again"});
}

}  // namespace convoy::apps
