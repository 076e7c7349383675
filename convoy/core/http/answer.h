// SPDX-License-Identifier: Apache-2.0
//
// The answer to an HTTP request.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace convoy::http {

struct Answer {
  int status = 0;
  std::map<std::string, std::string> headers = {};  // names in lower case
  std::string body = {};

  std::string header(const std::string& name) const;  // "" when absent
  // Takes a line of an answer's head. A further status line starts the answer over: the lines
  // before it belonged to an interim answer or to a proxy's answer.
  void take_line(std::string_view line);
};

}  // namespace convoy::http
