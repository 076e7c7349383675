// SPDX-License-Identifier: Apache-2.0
//
// The path and the parameters of a request.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace convoy::http {

struct RequestTarget {
  std::string path{};                                    // decoded
  std::multimap<std::string, std::string> parameters{};  // decoded

  std::string parameter(const std::string& name) const;  // its first value, or empty
};

// `target`: path and query, as sent. An incomplete %-code stays as it is.
RequestTarget parse_target(std::string_view target);

}  // namespace convoy::http
