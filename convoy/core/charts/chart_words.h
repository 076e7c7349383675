// SPDX-License-Identifier: Apache-2.0
//
// Fits the words of a figure into the space that they have.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace convoy::charts {

// Letters are measured in Arial. A machine without a font of Arial's widths may draw them wider by
// up to this factor; lines and columns leave room for that.
constexpr double kWidestFont = 1.12;

// `text`, shortened with an ellipsis to `width` pixels.
std::string fitted(const std::string& text, double width, double size, bool bold = false);

// The lines of `text` that fit `width`. A longer word is broken, after a sign such as `_` or `/` if
// it has one.
std::vector<std::string> wrapped(const std::string& text, double width, double size,
                                 bool bold = false);

// A title or the name of an axis: it is broken into lines, gets smaller letters if there are too
// many lines, and is shortened only if both are not enough.
struct ChartWords {
  std::vector<std::string> lines{};
  double size = 0;

  ChartWords() = default;
  ChartWords(const std::string& text, double width, double wanted_size, size_t most_lines,
             bool bold = false);
  double line_height() const { return 1.2 * size; }
  // The height of the lines after the first.
  double more_height() const;
};

}  // namespace convoy::charts
