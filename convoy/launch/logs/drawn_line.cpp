// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/logs/drawn_line.h"

#include <algorithm>

#include "convoy/core/base/utf8.h"

namespace convoy::launch {

std::string_view last_drawn(std::string_view line) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  const size_t redraw = line.rfind('\r');
  return redraw == std::string_view::npos ? line : line.substr(redraw + 1);
}

void DrawnLine::append(std::string_view piece) {
  if (piece.empty()) return;
  const bool ends_with_return = piece.back() == '\r';
  while (!piece.empty() && piece.back() == '\r') piece.remove_suffix(1);
  if (!piece.empty()) {
    const size_t redraw = piece.rfind('\r');
    if (at_line_start_ || redraw != std::string_view::npos) text_.clear();
    if (redraw != std::string_view::npos) {
      redrawn_ = true;
      piece.remove_prefix(redraw + 1);
    }
    text_ += piece.substr(0, max_bytes_ - std::min(max_bytes_, text_.size()));
    at_line_start_ = false;
  }
  if (ends_with_return) redrawn_ = at_line_start_ = true;
}

void DrawnLine::clear() {
  text_.clear();
  redrawn_ = at_line_start_ = false;
}

size_t DrawnLines::cut_position() const {
  const std::string& text = line_.text();
  size_t cut = text.size();
  // A UTF-8 sequence is one byte 11xxxxxx and then at most three bytes 10xxxxxx.
  const size_t stop = cut - 4;
  while (cut > stop && continues_character(text[cut - 1])) --cut;
  if (cut > stop && static_cast<unsigned char>(text[cut - 1]) >= 0xC0) return cut - 1;
  return text.size();
}

}  // namespace convoy::launch
