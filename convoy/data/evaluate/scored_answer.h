// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace convoy::evaluate {

// The input of a model, the model's answer, and the correct answers (at least one).
struct ScoredAnswer {
  std::optional<std::string> input = {};  // read only by some metrics
  std::string pred = {};
  std::vector<std::string> refs = {};
};

}  // namespace convoy::evaluate
