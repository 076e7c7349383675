// SPDX-License-Identifier: Apache-2.0
//
// Cells of CSV and TSV (RFC 4180).
#pragma once

#include <string>
#include <string_view>

namespace convoy {

// Appends the cell to a line, quoted where it must be.
void add_csv_cell(std::string_view cell, char separator, std::string& line);
// The same, but always quoted.
void add_quoted_csv_cell(std::string_view cell, std::string& line);
// Returns the cell as it is written between commas.
std::string csv_cell(std::string_view cell);

}  // namespace convoy
