// SPDX-License-Identifier: Apache-2.0
//
// An append-only file of whole records that must never stop the run that writes it: a record is
// there entirely or not at all, and a full disk costs records and one warning.
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

  // False when the record could not be written whole; what was written of it is cut off again. The
  // first failure warns; later ones are counted. Writing is tried again each time, as space may
  // return.
  bool append(std::string_view record);

  const std::filesystem::path& path() const { return path_; }
  int64_t lost_records() const { return lost_records_; }

 private:
  void fail(std::string_view what, int code);

  std::filesystem::path path_;
  Log log_;
  int descriptor_ = -1;
  int64_t lost_records_ = 0;
  bool warned_ = false;
};

}  // namespace convoy::telemetry
