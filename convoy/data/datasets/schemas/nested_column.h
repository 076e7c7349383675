// SPDX-License-Identifier: Apache-2.0
//
// The forms in which files hold nested columns: JSON texts (CSV), and structs of lists in the place
// of lists of structs (`datasets`' Sequence of a dict).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace convoy::data {

// The value that a text holds if it is a JSON list or object; any other value as it is.
nlohmann::ordered_json decoded_column(const nlohmann::ordered_json& column);

// {"role": [a, b], "content": [c, d]} as [{"role": a, "content": c}, ...]; any other value as it
// is.
nlohmann::ordered_json as_list_of_structs(nlohmann::ordered_json value);

// The row with lists of turns in place of the JSON texts that hold them, as tables have them: under
// `chosen` and `rejected`, under `prompt` and `completion`, or under `prompt` alone. Nothing where
// the row stays as it is: an answer beside a plain text is a text, whatever it says.
std::optional<nlohmann::ordered_json> with_decoded_turns(const nlohmann::ordered_json& row);

// True for null and for texts, lists and objects that are empty, as tables hold absent values.
bool is_absent(const nlohmann::ordered_json& column);

}  // namespace convoy::data
