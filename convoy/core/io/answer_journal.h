// SPDX-License-Identifier: Apache-2.0
//
// Saves finished answers before the whole output file exists: a folder beside it, one file per
// rank, one line per answer as it ends. A killed command resumes from it. One thread per rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "convoy/core/base/log.h"

namespace convoy::io {

class AnswerJournal {
 public:
  using Place = std::pair<int64_t, int64_t>;  // prompt, sample

  // True when answers for this output are saved. They are not saved for a device or a pipe, which
  // never becomes a whole file.
  static bool is_kept_beside(const std::string& output);

  // Reads the answers of all ranks for `output`. `key`: covers everything that an answer depends
  // on. Throws ConfigError when the answers were saved under another key, and IoError.
  AnswerJournal(const std::string& output, const std::string& key, int rank, const Log& log);
  ~AnswerJournal();
  AnswerJournal(const AnswerJournal&) = delete;
  AnswerJournal& operator=(const AnswerJournal&) = delete;

  const std::map<Place, std::string>& kept() const { return kept_; }
  const std::filesystem::path& folder() const { return folder_; }
  // Saves a line, given without a line break. The line survives the end of this process, but not a
  // crash of the machine. Throws IoError.
  void add(const Place& place, const std::string& line);
  // Forgets all lines that this rank saved, in earlier lives of the command too; kept() does not
  // change.
  void forget_own();
  // Call it when the output is complete: removes the folder with the answers of all ranks.
  void remove();

 private:
  void read(const std::filesystem::path& file, const std::string& key);
  void write(const std::string& line);
  void open_file();

  std::filesystem::path folder_;
  const std::string key_;
  const int rank_;
  std::map<Place, std::string> kept_;
  int descriptor_ = -1;
};

}  // namespace convoy::io
