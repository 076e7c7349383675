// SPDX-License-Identifier: Apache-2.0
//
// Conversations that a table holds as JSON texts, in the columns of prompts, completions and sides.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace convoy::data {

// The row with lists of turns in place of the JSON texts that hold them, as tables have them: under
// `chosen` and `rejected`, under `prompt` and `completion`, or under `prompt` alone. Nothing where
// the row stays as it is: an answer beside a plain text is a text, whatever it says.
std::optional<nlohmann::ordered_json> with_decoded_turns(const nlohmann::ordered_json& row);

}  // namespace convoy::data
