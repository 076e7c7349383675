// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/row_output.h"

#include <iostream>

#include "convoy/core/base/error.h"

namespace convoy::io {

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
  if (!std::cout.good())
    throw IoError("stdout cannot be written", {.hint = "is the disk full or the pipe closed?"});
}

void RowOutput::finish() {
  if (file_) file_->commit();
}

void LinesInOrder::add(int64_t place, std::string line) {
  early_.emplace(place, std::move(line));
  for (; !early_.empty() && early_.begin()->first == next_; ++next_) {
    take_(early_.begin()->second);
    early_.erase(early_.begin());
  }
}

void LinesInOrder::finish() {
  for (const auto& [place, line] : early_) take_(line);
  early_.clear();
}

}  // namespace convoy::io
