// SPDX-License-Identifier: Apache-2.0
//
// The forms in which files hold nested columns: JSON texts (CSV), and structs of lists in the place
// of lists of structs (`datasets`' Sequence of a dict).
#pragma once

#include <nlohmann/json.hpp>

namespace convoy::data {

// The JSON list or object that the text `column` holds; else `column` unchanged.
nlohmann::ordered_json decoded_column(const nlohmann::ordered_json& column);

// {"role": [a, b], "content": [c, d]} becomes [{"role": a, "content": c}, ...]; any other value is
// not changed.
nlohmann::ordered_json as_list_of_structs(nlohmann::ordered_json value);

// True for null, and for empty texts, lists and objects, which tables use for absent values.
bool is_absent(const nlohmann::ordered_json& column);

}  // namespace convoy::data
