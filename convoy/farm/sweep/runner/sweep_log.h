// SPDX-License-Identifier: Apache-2.0
//
// The log file of a sweep: a line for each message, with its time, level and author. For runs of
// days: at 16 MiB `sweep.log` becomes `sweep.log.1`, and the oldest of five files goes. Several
// runners may write to one folder. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "convoy/core/base/descriptor.h"

namespace convoy::sweep {

enum class Severity { Debug, Info, Warning, Error };

// "debug", "INFO", "warning" or "error". Throws ConfigError with `key` as its place.
Severity severity_of(const std::string& word, const std::string& key);

class SweepLog {
 public:
  static constexpr int64_t kFileBytes = 16 << 20;
  static constexpr int kFiles = 5;

  // `folder` empty: lines go nowhere. Lines below `least` are left out. Throws IoError when the
  // file cannot be opened.
  SweepLog(const std::filesystem::path& folder, Severity least, int64_t file_bytes = kFileBytes);

  // `author`: "runner", "worker 3". Line breaks in the text become blanks. A full disk loses lines,
  // never the sweep.
  void write(Severity severity, std::string_view author, std::string_view text);
  bool shows(Severity severity) const { return file_.open() && severity >= least_; }

 private:
  void open();
  void rotate();

  std::filesystem::path path_;  // empty: none
  Severity least_;
  int64_t file_bytes_;
  Descriptor file_;
};

}  // namespace convoy::sweep
