// SPDX-License-Identifier: Apache-2.0
//
// The figures of a run as an offline run of wandb, which `wandb sync` uploads: a folder
// offline-run-TIME-ID with the file run-ID.wandb. A resumed run goes on in its file, without the
// rows of steps that are done again and with its new settings; a run from step 1 replaces it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "convoy/core/base/log.h"
#include "convoy/core/reports/report_run.h"
#include "convoy/core/reports/wandb_log.h"
#include "convoy/core/telemetry/logs/report_sink.h"

namespace convoy::reports {

// WANDB_DIR, else the run folder; in it, `wandb`.
std::filesystem::path wandb_folder(const std::filesystem::path& run_folder);
// The file of the run `id` in such a folder; empty when there is none.
std::filesystem::path find_wandb_log(const std::filesystem::path& parent, const std::string& id);

class WandbReport : public telemetry::ReportSink {
 public:
  // Makes the run's folder below `parent`, or goes on in the one that a resumed run has there: in
  // its project, under its new name. Throws IoError, DataError.
  WandbReport(const std::filesystem::path& parent, const ReportRun& run, const Log& log);

  void add_row(int64_t step, const std::map<std::string, double>& figures) override;
  void end(int exit_code) override;

  const std::filesystem::path& folder() const { return folder_; }
  const std::string& project() const { return project_; }

 private:
  void begin(const ReportRun& run);
  void add_run(const ReportRun& run);
  // Reads the former start's figures in `kept`, and drops the rows of steps that are done again.
  void go_on(const std::filesystem::path& kept, int64_t resume_step);
  // Appends a record whose member `field` is the message.
  void add(uint64_t field, std::string_view message);
  double runtime_seconds() const;

  std::filesystem::path folder_;
  std::string project_;
  std::string name_;  // the name at a former start
  int64_t num_records_ = 0;
  int64_t num_rows_ = 0;
  double begin_seconds_ = 0;  // since 1970: when the run first began
  std::unique_ptr<WandbLog> log_file_;
};

}  // namespace convoy::reports
