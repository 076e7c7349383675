// SPDX-License-Identifier: Apache-2.0
//
// The answers that are finished before the file of all answers is: a folder beside it, one file per
// rank, a line per answer as it ends. A command that was killed goes on from what it holds. One
// thread per rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "convoy/core/base/log.h"

namespace convoy::recipes {

class AnswerJournal {
 public:
  using Place = std::pair<int64_t, int64_t>;  // prompt, sample

  // Whether answers of this output are kept: a device or a pipe is no file that could be whole
  // later.
  static bool is_kept_beside(const std::string& output);

  // Reads what all ranks have kept for `output`. `key`: of everything that an answer depends on.
  // Throws ConfigError when they were kept under another key, IoError.
  AnswerJournal(const std::string& output, const std::string& key, int rank, const Log& log);
  ~AnswerJournal();
  AnswerJournal(const AnswerJournal&) = delete;
  AnswerJournal& operator=(const AnswerJournal&) = delete;

  const std::map<Place, std::string>& kept() const { return kept_; }
  const std::filesystem::path& folder() const { return folder_; }
  // Keeps a line without line break. It outlives this process, not the machine. Throws IoError.
  void add(const Place& place, const std::string& line);
  // The output is whole: removes the folder, with what all ranks kept.
  void remove();

 private:
  void read(const std::filesystem::path& file, const std::string& key);
  void write(const std::string& line);

  std::filesystem::path folder_;
  std::map<Place, std::string> kept_;
  int descriptor_ = -1;
};

}  // namespace convoy::recipes
