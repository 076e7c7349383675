// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace convoy::process {

// The fields of a row that stages read. They are the same for every schema of rows.
struct RowFields {
  std::string problem = {};
  std::optional<std::string> solution = {};  // solution of the reference
  // Answers of the reference, from a column of their own: each is right.
  std::vector<std::string> answers = {};
};

}  // namespace convoy::process
