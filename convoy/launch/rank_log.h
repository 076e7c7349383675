// SPDX-License-Identifier: Apache-2.0
//
// Where the output of one rank goes: its log file, the console, and a memory of the last lines for the report.
#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <string_view>

#include "convoy/launch/descriptor.h"
#include "convoy/launch/logs/log_options.h"

namespace convoy::launch {

class RankLog {
 public:
  // `file` empty: none. An existing file is added to. Throws IoError.
  RankLog(int rank, Console console, const std::filesystem::path& file);

  // Bytes as the rank wrote them, cut anywhere.
  void take(Stream stream, std::string_view bytes);
  // The end of both streams: unfinished lines are written as lines.
  void finish();
  // A line that the rank did not write itself: only into the file.
  void note(std::string_view line);

  std::string last_lines() const;
  const std::filesystem::path& file() const { return file_path_; }

 private:
  void line(Stream stream, std::string_view text);
  void write_file(std::string_view text);

  int rank_;
  Console console_;
  bool plain_;  // the console gets the bytes as they come
  std::filesystem::path file_path_;
  Descriptor file_;
  bool file_failed_ = false;
  std::string unfinished_[2];  // by stream
  std::deque<std::string> last_;
};

}  // namespace convoy::launch
