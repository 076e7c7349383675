// SPDX-License-Identifier: Apache-2.0
//
// The columns of a file that nothing used, with the number of rows that fill them. Reported once,
// after all rows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace convoy::data {

// One thread.
class UnreadColumns {
 public:
  void add(const std::vector<std::string>& columns);  // the unread columns of one row
  bool empty() const { return rows_of_.empty(); }
  std::vector<std::string> names() const;  // in the order of appearance
  // A sentence such as "2 columns are not kept: `id` (in 3 rows), `topic` (in 1 row)". `what`: the
  // words "not kept".
  std::string sentence(std::string_view what) const;

 private:
  std::vector<std::pair<std::string, int64_t>> rows_of_;
  std::unordered_map<std::string, size_t> place_of_;
};

}  // namespace convoy::data
