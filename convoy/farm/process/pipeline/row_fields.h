// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace convoy::process {

// The fields of a row that stages read, whatever its schema.
struct RowFields {
  std::string problem = {};
  std::optional<std::string> solution = {};  // the reference's
  std::vector<std::string> answers = {};  // the reference's, from their own column: each is right
};

}  // namespace convoy::process
