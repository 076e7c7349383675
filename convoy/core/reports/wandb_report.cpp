// SPDX-License-Identifier: Apache-2.0
//
// Writes the messages of wandb_internal.proto (wandb 0.19 to 0.31); field numbers stand beside
// each use. Rows are numbered by `_step`; `train/global_step` is the axis of all figures, as in the
// integration of transformers.
#include "convoy/core/reports/wandb_report.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <system_error>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/protobuf_fields.h"
#include "convoy/core/base/time_text.h"
#include "convoy/core/base/wall_clock.h"
#include "convoy/core/reports/figure_text.h"
#include "convoy/core/reports/wandb_variables.h"
#include "convoy/core/telemetry/runs/run_folder.h"

namespace convoy::reports {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStepTag = "train/global_step";

// Members of Record.
enum RecordField : uint64_t {
  kNumber = 1,
  kHistory = 2,
  kSummary = 3,
  kConfig = 5,
  kFiles = 6,
  kMetric = 12,
  kRun = 17,
  kExit = 18,
  kHeader = 21
};

// An item of a configuration, history or summary: its key in member `key_field`, value_json=16.
std::string item(uint64_t key_field, std::string_view key, std::string_view value_json) {
  std::string message;
  put_bytes(message, key_field, key);
  put_bytes(message, 16, value_json);
  return message;
}

constexpr uint64_t kKey = 1;        // a top key
constexpr uint64_t kNestedKey = 2;  // a path of keys

// Timestamp{seconds=1, nanos=2}.
std::string timestamp(double seconds) {
  const double whole = std::floor(seconds);
  std::string message;
  put_integer(message, 1, static_cast<int64_t>(whole));
  put_integer(message, 2, static_cast<int64_t>((seconds - whole) * 1e9));
  return message;
}

// Reads the fields of a message that the reports of this file have. nullopt at its end.
class MessageReader {
 public:
  explicit MessageReader(std::string_view message) : left_(message) {}

  struct Field {
    uint64_t number = 0;
    uint64_t value = 0;           // a number
    std::string_view bytes = {};  // a message or a text
  };

  std::optional<Field> next() {
    if (left_.empty()) return std::nullopt;
    const uint64_t key = varint();
    Field field{.number = key >> 3};
    if ((key & 7) == 0) field.value = varint();
    if ((key & 7) == 1) take(8);
    if ((key & 7) == 5) take(4);
    if ((key & 7) == 2) field.bytes = take(varint());
    return field;
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; !left_.empty() && shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1).front());
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  std::string_view take(uint64_t count) {
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view left_;
};

std::optional<std::string_view> member(std::string_view message, uint64_t number) {
  MessageReader reader(message);
  while (const auto field = reader.next())
    if (field->number == number) return field->bytes;
  return std::nullopt;
}

// The step of the training of a row of the history.
int64_t step_of(std::string_view history) {
  MessageReader reader(history);
  while (const auto field = reader.next()) {
    if (field->number != 1) continue;
    if (member(field->bytes, kNestedKey).value_or("") != kStepTag) continue;
    return std::strtoll(std::string(member(field->bytes, 16).value_or("0")).c_str(), nullptr, 10);
  }
  return 0;
}

std::string config_of(const ReportRun& run) {
  std::string config;  // ConfigRecord.update=1
  put_bytes(config, 1, item(kKey, "_wandb", "{}"));
  for (const auto& [key, value] : run.config.items())
    put_bytes(config, 1, item(kKey, key, value.dump()));
  return config;
}

}  // namespace

fs::path wandb_folder(const fs::path& run_folder) {
  const std::string folder = environment_text("WANDB_DIR");
  if (folder.empty()) return run_folder / "wandb";
  if (folder == "~" || folder.starts_with("~/"))  // as wandb reads it
    return fs::path(environment_text("HOME") + folder.substr(1)) / "wandb";
  return fs::path(folder) / "wandb";
}

fs::path find_wandb_log(const fs::path& parent, const std::string& id) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    const std::string name = entry.path().filename().string();
    const fs::path file = entry.path() / fmt::format("run-{}.wandb", id);
    if (name.starts_with("offline-run-") && name.ends_with("-" + id) && fs::exists(file, ignored))
      return file;
  }
  return {};
}

WandbReport::WandbReport(const fs::path& parent, const ReportRun& run, const Log& log)
    : project_(run.project), begin_seconds_(wall_clock_seconds()) {
  const fs::path kept = find_wandb_log(parent, run.id);
  folder_ = kept.empty()
                ? parent / fmt::format("offline-run-{}-{}",
                                       local_time_text(static_cast<std::time_t>(begin_seconds_),
                                                       "%Y%m%d_%H%M%S"),
                                       run.id)
                : kept.parent_path();
  if (!kept.empty()) go_on(kept, run.resume_step);
  // wandb shows the files of this folder beside the run.
  write_file_atomic(folder_ / "files" / "convoy.json", run.config.dump(1) + "\n");
  log_file_ = std::make_unique<WandbLog>(folder_ / fmt::format("run-{}.wandb", run.id), log);
  if (num_records_ == 0) {
    begin(run);
    return;
  }
  if (name_ != run.name) add_run(run);
  add(kConfig, config_of(run));
}

void WandbReport::go_on(const fs::path& kept, int64_t resume_step) {
  std::error_code ignored;
  // The marks of `wandb sync`: the whole file is to be uploaded again.
  for (const char* mark : {".synced", ".syncstate"}) fs::remove(kept.string() + mark, ignored);
  if (resume_step < 0) {
    fs::remove(kept);
    return;
  }
  num_records_ = cut_wandb_log(kept, [&](std::string_view record) {
    if (const auto told = member(record, kRun)) {
      project_ = member(*told, 3).value_or("");
      name_ = member(*told, 8).value_or("");
      MessageReader begin(member(*told, 17).value_or(""));
      if (const auto seconds = begin.next()) begin_seconds_ = static_cast<double>(seconds->value);
    }
    if (member(record, kExit)) return true;
    const auto history = member(record, kHistory);
    if (!history) return false;
    if (step_of(*history) > resume_step) return true;
    ++num_rows_;
    return false;
  });
}

void WandbReport::add(uint64_t field, std::string_view message) {
  std::string record;
  put_integer(record, kNumber, ++num_records_);
  put_bytes(record, field, message);
  log_file_->append(record);
}

void WandbReport::begin(const ReportRun& run) {
  std::string version;  // HeaderRecord.version_info=1{producer=1, min_consumer=2}
  put_bytes(version, 1, "convoy-" CONVOY_VERSION);
  put_bytes(version, 2, "0.70.0");
  std::string header;
  put_bytes(header, 1, version);
  add(kHeader, header);

  add_run(run);

  // MetricRecord{name=1, glob_name=2, step_metric=4, options=6{step_sync=1, defined=3}}.
  std::string options;
  put_integer(options, 3, 1);
  std::string axis;
  put_bytes(axis, 1, kStepTag);
  put_bytes(axis, 6, options);
  add(kMetric, axis);
  std::string synced;
  put_integer(synced, 1, 1);
  std::string all;
  put_bytes(all, 2, "*");
  put_bytes(all, 4, kStepTag);
  put_bytes(all, 6, synced + options);
  add(kMetric, all);

  std::string file;  // FilesRecord.files=1{path=1, policy=2 (1: when the run ends)}
  put_bytes(file, 1, "convoy.json");
  put_integer(file, 2, 1);
  std::string files;
  put_bytes(files, 1, file);
  add(kFiles, files);
}

void WandbReport::add_run(const ReportRun& run) {
  // RunRecord{run_id=1, project=3, config=4, display_name=8, host=13, start_time=17}.
  std::string told;
  put_bytes(told, 1, run.id);
  put_bytes(told, 3, project_);
  put_bytes(told, 4, config_of(run));
  put_bytes(told, 8, run.name);
  put_bytes(told, 13, telemetry::host_name());
  put_bytes(told, 17, timestamp(begin_seconds_));
  add(kRun, told + wandb_run_members());
}

double WandbReport::runtime_seconds() const { return wall_clock_seconds() - begin_seconds_; }

void WandbReport::add_row(int64_t step, const std::map<std::string, double>& figures) {
  std::map<std::string, std::string> values;
  for (const auto& [tag, value] : figures) values[tag] = figure_text(value);
  values[kStepTag] = std::to_string(step);
  values["_timestamp"] = figure_text(wall_clock_seconds());
  values["_runtime"] = figure_text(runtime_seconds());
  values["_step"] = std::to_string(num_rows_);
  std::string history;  // HistoryRecord{item=1, step=2{num=1}}
  std::string summary;  // SummaryRecord.update=1
  for (const auto& [tag, value] : values) {
    put_bytes(history, 1, item(kNestedKey, tag, value));
    put_bytes(summary, 1, item(kNestedKey, tag, value));
  }
  std::string number;
  put_integer(number, 1, num_rows_++);
  put_bytes(history, 2, number);
  add(kHistory, history);
  add(kSummary, summary);
}

void WandbReport::end(int exit_code) {
  std::string exit;  // RunExitRecord{exit_code=1, runtime=2 in seconds}
  put_integer(exit, 1, exit_code);
  put_integer(exit, 2, static_cast<int64_t>(runtime_seconds()));
  add(kExit, exit);
}

}  // namespace convoy::reports
