// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace convoy::data {

// Appends the cell to a line of CSV or TSV, quoted where it must be (RFC 4180).
void add_csv_cell(std::string_view cell, char separator, std::string& line);

// The same, quoted in any case.
void add_quoted_csv_cell(std::string_view cell, std::string& line);

}  // namespace convoy::data
