// SPDX-License-Identifier: Apache-2.0
//
// The file of an offline run of wandb: seven bytes of head, then records in LevelDB's log format
// (github.com/google/leveldb/blob/main/doc/log_format.md) with the CRC-32 of zlib in place of
// LevelDB's masked CRC-32C. A block is 32 KiB; a piece of a record has its checksum, its length and
// its kind (whole, first, middle, last) before it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "convoy/core/base/log.h"
#include "convoy/core/telemetry/logs/append_file.h"

namespace convoy::reports {

// The CRC-32 of zlib (ISO 3309, reflected polynomial 0xedb88320), of `bytes` behind `crc`'s bytes.
uint32_t crc32(std::string_view bytes, uint32_t crc = 0);

class WandbLog {
 public:
  // Begins the file, or goes on behind its last record. The file is written as AppendFile does.
  WandbLog(const std::filesystem::path& file, const Log& log);

  void append(std::string_view record);

 private:
  telemetry::AppendFile file_;
  int64_t size_bytes_ = 0;
};

// Removes the first record for which `ends` is true and all that follow, and a torn end. Returns
// the number of records that stay. Throws DataError for another kind of file, IoError.
int64_t cut_wandb_log(const std::filesystem::path& file,
                      const std::function<bool(std::string_view record)>& ends);

}  // namespace convoy::reports
