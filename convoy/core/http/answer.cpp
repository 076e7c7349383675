// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/http/answer.h"

#include <cstdlib>

#include "convoy/core/base/lower_case.h"
#include "convoy/core/base/trimmed.h"

namespace convoy::http {

std::string Answer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

void Answer::take_line(std::string_view line) {
  if (line.starts_with("HTTP/")) {
    *this = {};
    if (const size_t space = line.find(' '); space != std::string_view::npos)
      status = std::atoi(std::string(line.substr(space + 1, 3)).c_str());
    return;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  headers[lower_case(std::string(line.substr(0, colon)))] =
      trimmed(line.substr(colon + 1), " \t\r\n");
}

}  // namespace convoy::http
