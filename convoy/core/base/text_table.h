// SPDX-License-Identifier: Apache-2.0
//
// Columns of text for people: as wide as their longest cell, two spaces apart, no line ends in
// spaces.
#pragma once

#include <string>
#include <vector>

namespace convoy {

// The first row is the heading. Every row has as many cells as the heading; an empty one shows as
// "-", but in the last column as nothing. Ends with a line break.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace convoy
