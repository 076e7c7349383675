// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace convoy::process {

// What the stages read of a row, whatever its schema.
struct RowFields {
  std::string problem = {};
  std::optional<std::string> solution = {};  // the reference's
  std::optional<std::string> answer = {};    // the reference's, from its own column
};

}  // namespace convoy::process
