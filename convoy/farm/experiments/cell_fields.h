// SPDX-License-Identifier: Apache-2.0
//
// The parameters of a cell as one JSON object, read and written over a list of fields whose entries
// the flags of the workload share: a name, its bounds and its words stand once.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/config/field_list.h"

namespace convoy::experiments {

// A list of lists of numbers: data of a cell, which no flag gives.
struct NumberRows {
  const char* name;
  std::vector<std::vector<double>>* rows;
};

// All that decides the numbers of a cell but its seed. Points into the parameters.
struct CellFields {
  config::Section list;
  std::vector<NumberRows> data = {};
};

// Sets what the object `text` has keys for. Throws ConfigError: no object, an unknown key, a wrong
// type, a value outside its bounds.
void read_cell(const std::string& text, const char* workload, const CellFields& cell);

void check_bounds(const CellFields& cell);  // throws ConfigError

// Every value that differs from its default, keys sorted: the text of the cell's identity. Both
// lists come from the same struct type.
std::string cell_text(const CellFields& cell, const CellFields& defaults);

// `words`: one for each enumerator, in their order. `word` is one of them: its field allows no
// other.
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
