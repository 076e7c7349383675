// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace convoy::data {

// Appends the cell to a line of CSV or TSV, quoted when needed (RFC 4180).
void add_csv_cell(std::string_view cell, char separator, std::string& line);

// The same, always quoted.
void add_quoted_csv_cell(std::string_view cell, std::string& line);

}  // namespace convoy::data
