// SPDX-License-Identifier: Apache-2.0
//
// Writes JSON rows to a file that appears when it is complete, or to stdout as they are made.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "convoy/core/base/files.h"

namespace convoy::io {

// One line without a line break. A model's text may end inside a character; such bytes become
// U+FFFD.
std::string line_of(const nlohmann::ordered_json& row);

class RowOutput {
 public:
  explicit RowOutput(const std::string& path);  // empty: stdout

  void add(const std::string& line);  // a line from line_of(). Throws IoError
  void finish();                      // publishes the file

 private:
  std::unique_ptr<AtomicFile> file_;
};

// Passes lines on in the order of their places, which count from 0. A line that is added early is
// kept until the lines before it are passed on.
class LinesInOrder {
 public:
  explicit LinesInOrder(std::function<void(const std::string&)> take) : take_(std::move(take)) {}
  void add(int64_t place, std::string line);
  // Call it when no more lines come: passes on the lines that are still kept.
  void finish();

 private:
  int64_t next_ = 0;
  std::function<void(const std::string&)> take_;
  std::map<int64_t, std::string> early_;
};

}  // namespace convoy::io
