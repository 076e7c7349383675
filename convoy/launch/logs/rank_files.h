// SPDX-License-Identifier: Apache-2.0
//
// The log files of one rank, in the layout that was asked for.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "convoy/launch/logs/log_file.h"
#include "convoy/launch/logs/log_options.h"

namespace convoy::launch {

// The folder of an attempt's own files: FOLDER/attempt_N, or FOLDER in the Convoy layout.
std::filesystem::path attempt_folder(const LogOptions& options);

class RankFiles {
 public:
  // Makes the rank's files. Throws nothing: see failed().
  RankFiles(const LogOptions& options, int local_rank);

  // False when the bytes are not in a file: the stream has no file, or the file failed.
  bool take(Stream stream, std::string_view bytes);
  bool stores(Stream stream) const;  // the stream has a file, and it works
  void finish();                     // stores unfinished lines of the Convoy layout
  void note(std::string_view line);

  const LogFile* failed() const;  // a file whose disk refuses writes now; null = none
  const std::filesystem::path& to_read() const;  // the file for a person; empty = none

 private:
  bool take_lines(Stream stream, std::string_view bytes);
  bool take_drawn(const std::string& unfinished, std::string_view lines);

  LogLayout layout_;
  LogFile files_[2];           // by stream; in the Convoy layout the first takes both streams
  std::string unfinished_[2];  // by stream, in the Convoy layout
};

}  // namespace convoy::launch
