// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/row_output.h"

#include <iostream>

#include "convoy/base/error.h"

namespace convoy::recipes {

RowOutput::RowOutput(const std::string& path) {
  if (!path.empty()) file_ = std::make_unique<AtomicFile>(path);
}

void RowOutput::add(const nlohmann::ordered_json& row) {
  // Text of a model may end inside a character; such bytes become U+FFFD.
  const std::string line =
      row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (file_) {
    file_->write(std::string_view(line));
    return;
  }
  std::cout << line << std::flush;
  CONVOY_CHECK(std::cout.good(), IoError, "stdout cannot be written");
}

void RowOutput::finish() {
  if (file_) file_->commit();
}

}  // namespace convoy::recipes
