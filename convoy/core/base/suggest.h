// SPDX-License-Identifier: Apache-2.0
//
// "did you mean": the nearest known word to a misspelt one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace convoy {

// Returns the candidate at the smallest edit distance (insert, delete, replace, swap), or "" when
// no candidate is near. Near means at most one edit per three letters; '-' and '_' are equal.
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

// ", did you mean `x`?" or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// The candidates, the smallest edit distance first; candidates at the same distance are in
// alphabetical order.
std::vector<std::string> nearest_first(std::string_view word, std::vector<std::string> candidates);

}  // namespace convoy
