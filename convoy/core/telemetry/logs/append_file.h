// SPDX-License-Identifier: Apache-2.0
//
// An append-only file of whole records that never stops the run that writes it. A record is written
// entirely or not at all. A full disk costs records and causes one warning.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "convoy/core/base/log.h"

namespace convoy::telemetry {

class AppendFile {
 public:
  // Creates the file and its folders when missing. When that fails the object counts every record
  // as lost.
  AppendFile(std::filesystem::path path, const Log& log);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Returns false when the record could not be written whole; the partial write is removed. The
  // first failure warns. Every call tries again, because space may become free.
  bool append(std::string_view record);

  const std::filesystem::path& path() const { return path_; }

 private:
  void fail(std::string_view what, int code);

  std::filesystem::path path_;
  Log log_;
  int descriptor_ = -1;
  bool warned_ = false;
};

}  // namespace convoy::telemetry
