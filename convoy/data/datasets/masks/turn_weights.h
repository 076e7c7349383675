// SPDX-License-Identifier: Apache-2.0
//
// The weights in the loss that messages set for themselves: `weight` (OpenAI), `loss_weight`
// (LLaMA-Factory), `train`, `training`, `trainable` (axolotl), `loss`, `loss_scale` (ms-swift),
// `loss_mask` (verl) and `masked` (torchtune). The first six and `loss_mask` are true, false or a
// weight; `masked` is the reverse of `train`; `loss_scale` is a factor for learnt tokens. In
// messages of other roles than assistant, `weight`, `loss_weight` and `loss` count only if the
// message would be learnt without them too.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::data {

// Replaces all weight keys of a message by the numbers `weight` (0: not learnt), or `loss_weight`
// (for a message that is learnt without it), and `loss_scale`, as far as the message states them.
// Null counts as absent. Returns the reason why the keys cannot be followed; empty when they can.
std::string settle_turn_weight(nlohmann::ordered_json& message);

bool is_turn_weight_key(std::string_view key);
// True for a key that is no weight key but resembles one, such as `loss_weights` or `isTrainable`.
bool looks_like_turn_weight(std::string_view key);

// The functions below take messages after settle_turn_weight().
bool has_turn_weights(const nlohmann::ordered_json& messages);
nlohmann::ordered_json without_turn_weights(nlohmann::ordered_json messages);
// The weight of each message in the loss; 0: it is not learnt. `is_learnt`: the rule for a message
// without a weight.
std::vector<double> turn_weights(const nlohmann::ordered_json& messages,
                                 const std::function<bool(size_t message)>& is_learnt);

}  // namespace convoy::data
