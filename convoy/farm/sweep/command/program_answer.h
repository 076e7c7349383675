// SPDX-License-Identifier: Apache-2.0
//
// Numbers in lines of JSON that programs print.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace convoy::sweep {

// True for what programs print in place of a finite number: nan, -NaN, +Inf, Infinity, 1.#QNAN ...
bool is_not_finite(std::string_view text);

// The line as a JSON object; nothing when it is not one. A value that is_not_finite() is its
// text, and so is a number that no double holds (1e999).
std::optional<nlohmann::json> json_line(std::string_view line);

// The value that `key` names in the object: "loss", or "final.loss" in an object within it; a key
// that contains dots itself goes first. Null when there is none.
const nlohmann::json* find_key(const nlohmann::json& object, const std::string& key);

// True when json_line() made this text from a number.
bool is_number_as_text(const nlohmann::json& value);

// NaN for what is no finite number. Throws TaskFailure: "non_finite" for a number out of range,
// "output" for what is no number; null is none, as it is in a program that has not computed any.
double number_of(const nlohmann::json& value, const std::string& key);

}  // namespace convoy::sweep
