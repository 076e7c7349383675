// SPDX-License-Identifier: Apache-2.0
//
// Writes JSON rows to a file that appears when it is complete, or to stdout as they are made.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/core/base/files.h"

namespace convoy::recipes {

// One line without a line break. A model's text may end inside a character; such bytes become
// U+FFFD.
std::string line_of(const nlohmann::ordered_json& row);

class RowOutput {
 public:
  explicit RowOutput(const std::string& path);  // empty: stdout

  void add(const std::string& line);  // as line_of() gives it. Throws IoError
  void finish();                      // publishes the file

 private:
  std::unique_ptr<AtomicFile> file_;
};

}  // namespace convoy::recipes
