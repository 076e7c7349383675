// SPDX-License-Identifier: Apache-2.0
//
// A small CSV file (RFC 4180) as rows of texts by name. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace convoy::sweep {

struct CsvRows {
  std::vector<std::string> names;              // the words of the first line
  std::vector<std::vector<std::string>> rows;  // each as long as `names`
};

// Throws DataError with the line: a row of another length, a name that is empty or there twice, an
// open quote, no row. `file` is its name in errors.
CsvRows read_csv(std::string_view text, const std::string& file);

}  // namespace convoy::sweep
