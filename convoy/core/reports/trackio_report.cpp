// SPDX-License-Identifier: Apache-2.0
//
// Makes the tables of trackio 0.24 to 0.43 (its sqlite_storage.py, schema version 2). trackio
// adds its other tables when it opens the file.
#include "convoy/core/reports/trackio_report.h"

#include <convoy_text.h>
#include <sqlite3.h>

#include <cmath>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/time_text.h"
#include "convoy/core/base/utf8.h"
#include "convoy/core/base/wall_clock.h"
#include "convoy/core/io/hub_cache.h"
#include "convoy/core/reports/figure_text.h"

namespace convoy::reports {
namespace {

namespace fs = std::filesystem;

constexpr int kBusyMs = 10'000;  // another run may write to the same project

constexpr const char* kTables = R"(
CREATE TABLE IF NOT EXISTS metrics (
  id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, timestamp TEXT NOT NULL,
  run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL, log_id TEXT, space_id TEXT);
CREATE INDEX IF NOT EXISTS idx_metrics_run_step ON metrics(run_id, step);
CREATE INDEX IF NOT EXISTS idx_metrics_run_timestamp ON metrics(run_id, timestamp);
CREATE TABLE IF NOT EXISTS configs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, run_name TEXT NOT NULL,
  config TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE(run_id));
CREATE INDEX IF NOT EXISTS idx_configs_run_name ON configs(run_name);
CREATE TABLE IF NOT EXISTS system_metrics (
  id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, timestamp TEXT NOT NULL,
  run_name TEXT NOT NULL, metrics TEXT NOT NULL, log_id TEXT, space_id TEXT);
CREATE TABLE IF NOT EXISTS project_metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL);
)";

// Python's datetime.isoformat() in UTC, which trackio reads: 2026-01-02T03:04:05.678901+00:00.
std::string time_now() {
  const double seconds = wall_clock_seconds();
  const double whole = std::floor(seconds);
  std::string text = utc_time_text(static_cast<int64_t>(whole));
  text.pop_back();  // Z
  return text + fmt::format(".{:06}+00:00", static_cast<int64_t>((seconds - whole) * 1e6));
}

// The code point of a character in UTF-8.
uint32_t code_of(std::string_view character) {
  const auto first = static_cast<uint8_t>(character.front());
  uint32_t code = character.size() == 1 ? first : first & (0x7fu >> character.size());
  for (const char byte : character.substr(1))
    code = code << 6 | (static_cast<uint8_t>(byte) & 0x3f);
  return code;
}

}  // namespace

fs::path trackio_folder() {
  const std::string folder = environment_text("TRACKIO_DIR");
  return folder.empty() ? io::hub_home_folder() / "trackio" : fs::path(folder);
}

// As trackio's canonical_project_name().
fs::path trackio_file(const std::string& project) {
  std::string name;
  for (size_t at = 0; at < project.size();) {
    size_t end = at + 1;
    while (end < project.size() && continues_character(project[end])) ++end;
    const std::string_view letter = std::string_view(project).substr(at, end - at);
    if (letter == "-" || letter == "_" ||
        convoy_letter_class(code_of(letter)) == CONVOY_LETTER_OR_NUMBER)
      name += letter;
    at = end;
  }
  return trackio_folder() / ((name.empty() ? "default" : name) + ".db");
}

bool trackio_has_run(const fs::path& file, const std::string& id) {
  sqlite3* database = nullptr;
  sqlite3_stmt* rows = nullptr;
  const bool has_run =
      sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK &&
      sqlite3_busy_timeout(database, kBusyMs) == SQLITE_OK &&
      sqlite3_prepare_v2(database, "SELECT 1 FROM configs WHERE run_id = ?1", -1, &rows, nullptr) ==
          SQLITE_OK &&
      sqlite3_bind_text(rows, 1, id.c_str(), static_cast<int>(id.size()), SQLITE_STATIC) ==
          SQLITE_OK &&
      sqlite3_step(rows) == SQLITE_ROW;
  sqlite3_finalize(rows);
  sqlite3_close_v2(database);
  return has_run;
}

TrackioReport::TrackioReport(const fs::path& file, const ReportRun& run, const Log& log)
    : file_(file), id_(run.id), name_(run.name), log_(log) {
  std::error_code ignored;  // opening reports it
  fs::create_directories(file_.parent_path(), ignored);
  try {
    if (sqlite3_open_v2(file_.c_str(), &database_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                        nullptr) != SQLITE_OK)
      fail("open");
    sqlite3_busy_timeout(database_, kBusyMs);
    begin(run);
  } catch (...) {
    sqlite3_close_v2(database_);
    throw;
  }
}

TrackioReport::~TrackioReport() { sqlite3_close_v2(database_); }

void TrackioReport::begin(const ReportRun& run) {
  run_script("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;");
  run_script("BEGIN IMMEDIATE;");
  run_script(kTables);
  change("DELETE FROM metrics WHERE run_id = ?1 AND step > ?2", {id_}, run.resume_step);
  // To trackio, rows of another name are another run.
  change("UPDATE metrics SET run_name = ?3 WHERE run_id = ?1 AND run_name <> ?3", {id_, name_});
  nlohmann::ordered_json config = {
      {"_Username", nullptr}, {"_Created", time_now()}, {"_Group", nullptr}};
  config.update(run.config);
  change(
      "INSERT OR REPLACE INTO configs (run_id, run_name, config, created_at) "
      "VALUES (?1, ?3, ?4, ?5)",
      {id_, name_, config.dump(), time_now()});
  run_script("COMMIT;");
}

// Parameter 1 is the first text, 2 the step, 3 and on the other texts.
void TrackioReport::change(const char* sql, const std::vector<std::string>& texts, int64_t step) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr) != SQLITE_OK) fail("write");
  for (size_t index = 0; index < texts.size(); ++index)
    sqlite3_bind_text(statement, static_cast<int>(index == 0 ? 1 : index + 2), texts[index].c_str(),
                      static_cast<int>(texts[index].size()), SQLITE_STATIC);
  sqlite3_bind_int64(statement, 2, step);
  const int code = sqlite3_step(statement);
  sqlite3_finalize(statement);
  if (code != SQLITE_DONE) fail("write");
}

void TrackioReport::run_script(const char* sql) {
  if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail("write");
}

void TrackioReport::fail(const char* what) const {
  throw IoError(fmt::format("could not {} trackio's database {}: {}", what, file_.string(),
                            database_ == nullptr ? "no memory" : sqlite3_errmsg(database_)),
                {.file = file_.string(),
                 .hint = "check its folder and space, or set TRACKIO_DIR to another folder"});
}

void TrackioReport::add_row(int64_t step, const std::map<std::string, double>& figures) {
  std::string row = "{";
  for (const auto& [tag, value] : figures)
    row += fmt::format("{}{}:{}", row.size() == 1 ? "" : ",", nlohmann::json(tag).dump(),
                       figure_text(value));
  row += "}";
  try {
    change(
        "INSERT INTO metrics (run_id, step, timestamp, run_name, metrics) "
        "VALUES (?1, ?2, ?3, ?4, ?5)",
        {id_, time_now(), name_, row}, step);
  } catch (const Error& error) {
    if (!std::exchange(warned_, true))
      log_.warning(fmt::format("{}; the run goes on without these rows", error.what()));
  }
}

}  // namespace convoy::reports
