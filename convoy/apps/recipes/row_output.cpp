// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/row_output.h"

#include <iostream>

#include "convoy/core/base/error.h"

namespace convoy::recipes {

RowOutput::RowOutput(const std::string& path) {
  if (!path.empty()) file_ = std::make_unique<AtomicFile>(path);
}

std::string line_of(const nlohmann::ordered_json& row) {
  return row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void RowOutput::add(const std::string& line) {
  if (file_) {
    file_->write(std::string_view(line + "\n"));
    return;
  }
  std::cout << line + "\n" << std::flush;
  CONVOY_CHECK(std::cout.good(), IoError, "stdout cannot be written");
}

void RowOutput::finish() {
  if (file_) file_->commit();
}

}  // namespace convoy::recipes
