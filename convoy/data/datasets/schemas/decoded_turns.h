// SPDX-License-Identifier: Apache-2.0
//
// Conversations that a table holds as JSON texts, in the columns of prompts, completions and sides.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace convoy::data {

// The row, where JSON texts that hold turns are replaced by lists of turns: under `chosen` and
// `rejected`, under `prompt` and `completion`, or under `prompt` alone. Tables hold turns in this
// way. Empty when the row does not change. An answer beside a prompt that is a plain text stays a
// text, whatever it contains.
std::optional<nlohmann::ordered_json> with_decoded_turns(const nlohmann::ordered_json& row);

}  // namespace convoy::data
