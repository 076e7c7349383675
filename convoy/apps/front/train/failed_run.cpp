// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/train/failed_run.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/json_member.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "convoy/core/telemetry/runs/run_history.h"

namespace convoy::apps {
namespace {

// Facts about this start from the run's event rows.
struct StartEvents {
  bool began = false;
  bool failed = false;
};

StartEvents told_since(const std::filesystem::path& events,
                       std::chrono::system_clock::time_point begin) {
  StartEvents told;
  if (!std::filesystem::exists(events)) return told;
  // Rows store times in whole milliseconds.
  const auto since = std::chrono::floor<std::chrono::milliseconds>(begin.time_since_epoch());
  try {
    for (const nlohmann::ordered_json& row : telemetry::read_events(events)) {
      if (member_or(row, "time", 0.0) < static_cast<double>(since.count()) / 1000.0) continue;
      told.began = told.began || row["event"] == "start";
      told.failed = told.failed || row["event"] == "failure";
    }
  } catch (const DataError&) {
    // Damaged rows are ignored here; the commands that show them report the damage.
  }
  return told;
}

bool is_refusal(int exit_code) {
  const auto code = static_cast<ExitCode>(exit_code);
  return code == ExitCode::Usage || code == ExitCode::BadInput || code == ExitCode::NoCheckpoint;
}

}  // namespace

void record_failure(const Log& log, const telemetry::RunFolder& folder,
                    const launch::LaunchReport& report,
                    std::chrono::system_clock::time_point begin) {
  if (!report.failed()) return;
  const bool still_ran =
      report.root_cause >= 0 && report.ends[static_cast<size_t>(report.root_cause)].still_ran();
  const StartEvents told = told_since(folder.events_path(), begin);
  if (!still_ran && (told.failed || (!told.began && is_refusal(report.exit_code)))) return;
  const auto line = nlohmann::ordered_json::parse(launch::failure_json(report), nullptr, false);
  nlohmann::ordered_json row;
  for (const char* const name : {"code", "kind", "message", "rank", "step"})
    if (line.contains(name) && !line[name].is_null()) row[name] = line[name];
  telemetry::EventLog(folder.events_path(), log).append(telemetry::EventKind::Failure, row);
}

bool is_refused(const telemetry::RunFolder& folder, const launch::LaunchReport& report) {
  if (report.root_cause < 0) return false;
  const launch::RankEnd& cause = report.ends[static_cast<size_t>(report.root_cause)];
  if (cause.sentence.empty() || cause.still_ran() || !is_refusal(report.exit_code)) return false;
  return !telemetry::read_run_record(folder.identity_path()).contains("starts");
}

void remove_folder(const telemetry::RunFolder& folder, launch::LaunchReport& report) {
  std::error_code ignored;
  std::filesystem::remove_all(folder.path(), ignored);
  for (launch::RankEnd& end : report.ends) {
    end.log_file.clear();
    end.error_file.clear();
  }
}

}  // namespace convoy::apps
