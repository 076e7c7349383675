// SPDX-License-Identifier: Apache-2.0
//
// Finds numbers in the lines of JSON that programs print.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace convoy::sweep {

// True for a text that programs print in place of a finite number: nan, -NaN, +Inf, Infinity,
// 1.#QNAN ...
bool is_not_finite(std::string_view text);

// The line as a JSON object; nullopt if it is none. A value that is_not_finite() becomes a text,
// and so does a number that is too large for a double (1e999).
std::optional<nlohmann::json> json_line(std::string_view line);

// The value of `key` in the object: "loss", or "final.loss" for a member of an inner object. A
// member whose own name contains the dots comes first. Null if there is no such member.
const nlohmann::json* find_key(const nlohmann::json& object, const std::string& key);

// True when json_line() made this text from a number.
bool is_number_as_text(const nlohmann::json& value);

// The value as a number; NaN if it is not finite. Throws TaskFailure: "non_finite" for a number out
// of range, "output" for a value that is no number. Null is no number either: programs print it for
// a result that they have not computed.
double number_of(const nlohmann::json& value, const std::string& key);

}  // namespace convoy::sweep
