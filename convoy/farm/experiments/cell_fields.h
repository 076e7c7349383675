// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes the parameters of a cell as one JSON object, from a list of fields. The
// workload's flags use the same list, so each name, its bounds and its words are written only once.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/config/field_list.h"

namespace convoy::experiments {

// A list of lists of numbers in a cell. No flag sets it.
struct NumberRows {
  const char* name;
  std::vector<std::vector<double>>* rows;
};

// The fields that decide the numbers of a cell; the seed is not among them. Holds pointers into the
// parameters.
struct CellFields {
  config::Section list;
  std::vector<NumberRows> data = {};
};

// Sets the fields for which the JSON object `text` has a key. Throws ConfigError if `text` is no
// object, or has an unknown key, a value of a wrong type or a value outside its bounds.
void read_cell(const std::string& text, const char* workload, const CellFields& cell);

void check_bounds(const CellFields& cell);  // throws ConfigError

// The JSON text of every value that differs from its default, with sorted keys. It identifies the
// cell. `cell` and `defaults` must list the fields of the same struct type.
std::string cell_text(const CellFields& cell, const CellFields& defaults);

// The enumerator that `word` names. `words` has one word per enumerator, in the order of the
// enumerators, and contains `word`: the field's bounds refuse other words.
template <class Enum>
Enum enumerator_of(const std::string& word, const std::vector<std::string>& words) {
  const auto found = std::find(words.begin(), words.end(), word);
  CONVOY_INVARIANT(found != words.end(), "`{}` is no word of this list", word);
  return static_cast<Enum>(found - words.begin());
}

template <class Enum>
const std::string& enumerator_word(Enum value, const std::vector<std::string>& words) {
  return words.at(static_cast<size_t>(value));
}

}  // namespace convoy::experiments
