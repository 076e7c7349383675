// SPDX-License-Identifier: Apache-2.0
//
// The log file of a sweep: a line for each message, with its time, level and author. At 16 MiB
// `sweep.log` is renamed to `sweep.log.1`, and the oldest of five files is deleted, so that the log
// of a run of days stays small. Several runners may write to one folder. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "convoy/core/base/descriptor.h"

namespace convoy::sweep {

enum class Severity { Debug, Info, Warning, Error };

// Reads "debug", "INFO", "warning" or "error". Throws ConfigError with `key` as its place.
Severity severity_of(const std::string& word, const std::string& key);

class SweepLog {
 public:
  static constexpr int64_t kFileBytes = 16 << 20;
  static constexpr int kFiles = 5;

  // With an empty `folder` lines are not written. Lines below `least` are left out. Throws IoError
  // if the file cannot be opened.
  SweepLog(const std::filesystem::path& folder, Severity least, int64_t file_bytes = kFileBytes);

  // `author`: such as "runner" or "worker 3". Line breaks in the text become blanks. On a full disk
  // lines are lost, but the sweep continues.
  void write(Severity severity, std::string_view author, std::string_view text);
  bool shows(Severity severity) const { return file_.open() && severity >= least_; }

 private:
  void open();
  void rotate();

  std::filesystem::path path_;  // empty: no file
  Severity least_;
  int64_t file_bytes_;
  Descriptor file_;
};

}  // namespace convoy::sweep
