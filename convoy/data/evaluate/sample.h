// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace convoy::evaluate {

// What a model was asked, its answer, and answers that are right: at least one.
struct Sample {
  std::optional<std::string> input = {};  // only some metrics read it
  std::string pred = {};
  std::vector<std::string> refs = {};
};

}  // namespace convoy::evaluate
