// SPDX-License-Identifier: Apache-2.0
//
// Columns of text for people. A column is as wide as its longest cell, columns are two spaces
// apart, and no line ends in spaces.
#pragma once

#include <string>
#include <vector>

namespace convoy {

// The first row is the heading. Every row has as many cells as the heading. An empty cell is shown
// as "-", in the last column as nothing. Ends with a line break.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace convoy
