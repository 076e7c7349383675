// SPDX-License-Identifier: Apache-2.0
//
// Chooses the turns of a chat that the loss includes, before they are located in the rendered text.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/data/datasets/masks/supervision.h"

namespace convoy::data {

// The turns to locate.
struct TurnChoice {
  size_t first = 0;                   // index of the first message to look at
  std::vector<std::string> roles;     // roles of the turns, as the template knows them
  std::vector<bool> is_located = {};  // by message
};

// In both functions `given` are the messages of the row, `readable` the same messages in the form
// that the template reads, and `num_prompt` of them come before the completion.

// Chooses turns by their roles: a role counts under the name in the row and under the name that the
// template knows. With Supervise::Last the search begins at the last of these turns.
TurnChoice turns_by_role(const Supervision& supervision, const nlohmann::ordered_json& given,
                         const nlohmann::ordered_json& readable, size_t num_prompt);

struct WeightedTurnChoice {
  TurnChoice turns;
  std::vector<double> weights;  // by message; 0: not learnt
};

// Chooses turns by the weights that they have in the row; turns without a weight by their roles.
// With Supervise::All only turns with a weight other than 1 are located.
WeightedTurnChoice turns_by_weight(const Supervision& supervision,
                                   const nlohmann::ordered_json& given,
                                   const nlohmann::ordered_json& readable, size_t num_prompt);

}  // namespace convoy::data
