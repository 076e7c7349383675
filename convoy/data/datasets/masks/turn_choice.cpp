// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/masks/turn_choice.h"

#include <algorithm>

#include "convoy/data/datasets/chats/chat_roles.h"
#include "convoy/data/datasets/masks/turn_weights.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

std::vector<bool> learnt_by_role(const Supervision& supervision, const ordered_json& given,
                                 const ordered_json& readable) {
  std::vector<bool> learnt;
  for (size_t index = 0; index < readable.size(); ++index)
    learnt.push_back(supervision.learns(role_of(given[index])) ||
                     supervision.learns(role_of(readable[index])));
  return learnt;
}

void add_role(std::vector<std::string>& roles, const std::string& role) {
  if (std::find(roles.begin(), roles.end(), role) == roles.end()) roles.push_back(role);
}

// Sets all weights except the last positive one to 0.
void keep_last(std::vector<double>& weights) {
  const auto last =
      std::find_if(weights.rbegin(), weights.rend(), [](double weight) { return weight > 0; });
  for (auto weight = last; weight != weights.rend(); ++weight)
    if (weight != last) *weight = 0;
}

}  // namespace

TurnChoice turns_by_role(const Supervision& supervision, const ordered_json& given,
                         const ordered_json& readable, size_t num_prompt) {
  TurnChoice choice{.first = num_prompt,
                    .roles = supervision.roles,
                    .is_located = learnt_by_role(supervision, given, readable)};
  const std::vector<bool>& learnt = choice.is_located;
  if (supervision.supervise == Supervise::Last)
    for (size_t index = learnt.size(); index-- > num_prompt;)
      if (learnt[index]) {
        choice.first = index;
        break;
      }
  for (size_t index = 0; index < learnt.size(); ++index)
    if (learnt[index]) add_role(choice.roles, role_of(readable[index]));
  return choice;
}

WeightedTurnChoice turns_by_weight(const Supervision& supervision, const ordered_json& given,
                                   const ordered_json& readable, size_t num_prompt) {
  const bool learns_all = supervision.supervise == Supervise::All;
  const std::vector<bool> learnt = learnt_by_role(supervision, given, readable);
  WeightedTurnChoice choice{.turns = {.first = readable.size(), .roles = {}},
                            .weights = turn_weights(given, [&](size_t index) {
                              return learns_all || (index >= num_prompt && learnt[index]);
                            })};
  if (supervision.supervise == Supervise::Last) keep_last(choice.weights);
  for (const double weight : choice.weights)
    choice.turns.is_located.push_back(learns_all ? weight != 1 : weight > 0);
  for (size_t index = readable.size(); index-- > 0;) {
    if (!choice.turns.is_located[index]) continue;
    choice.turns.first = index;
    add_role(choice.turns.roles, role_of(readable[index]));
  }
  return choice;
}

}  // namespace convoy::data
