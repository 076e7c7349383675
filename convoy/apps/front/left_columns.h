// SPDX-License-Identifier: Apache-2.0
//
// Columns that a sub-command of `convoy data` read but did not write; reported once, after all
// rows.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "convoy/apps/front/command.h"

namespace convoy::apps {

// One thread.
class LeftColumns {
 public:
  void add(const std::vector<std::string>& columns);  // columns of one row
  // Prints one warning with the columns and the number of rows that had a value; `hint` says how to
  // keep them. Prints nothing when there are none.
  void tell(const Context& context, const std::string& hint) const;
  nlohmann::ordered_json names() const;

 private:
  std::vector<std::pair<std::string, int64_t>> rows_of_;  // in the order in which they were met
};

}  // namespace convoy::apps
