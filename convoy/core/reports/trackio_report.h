// SPDX-License-Identifier: Apache-2.0
//
// The figures of a run in a trackio database (github.com/gradio-app/trackio): one SQLite file for a
// project, with tables of metrics and of configurations.
#pragma once

#include <filesystem>
#include <string>

#include "convoy/core/base/log.h"
#include "convoy/core/reports/report_run.h"
#include "convoy/core/telemetry/logs/report_sink.h"

struct sqlite3;

namespace convoy::reports {

// TRACKIO_DIR, else the folder `trackio` of the hub's home; and the file of a project in it.
std::filesystem::path trackio_folder();
// The project's name is UTF-8. Its letters, digits, '-' and '_' name the file.
std::filesystem::path trackio_file(const std::string& project);
// False also when there is no such file, or it is of another kind.
bool trackio_has_run(const std::filesystem::path& file, const std::string& id);

class TrackioReport : public telemetry::ReportSink {
 public:
  // Makes the file and its tables when they are missing; other runs in it stay. Removes the run's
  // rows of steps after `run.resume_step`, and gives the others its name. Throws IoError, also for
  // a file of another kind.
  TrackioReport(const std::filesystem::path& file, const ReportRun& run, const Log& log);
  ~TrackioReport() override;
  TrackioReport(const TrackioReport&) = delete;
  TrackioReport& operator=(const TrackioReport&) = delete;

  void add_row(int64_t step, const std::map<std::string, double>& figures) override;
  void end(int) override {}

 private:
  void begin(const ReportRun& run);
  void change(const char* sql, const std::vector<std::string>& texts, int64_t step = 0);
  void run_script(const char* sql);
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path file_;
  std::string id_;
  std::string name_;
  Log log_;
  sqlite3* database_ = nullptr;
  bool warned_ = false;
};

}  // namespace convoy::reports
