// SPDX-License-Identifier: Apache-2.0
//
// JSON rows to a file that appears when it is whole, or to stdout as they come.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/base/files.h"

namespace convoy::recipes {

class RowOutput {
 public:
  explicit RowOutput(const std::string& path);  // empty: stdout

  void add(const nlohmann::ordered_json& row);  // throws IoError
  void finish();                                // publishes the file

 private:
  std::unique_ptr<AtomicFile> file_;
};

}  // namespace convoy::recipes
