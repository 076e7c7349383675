// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/charts/chart_words.h"

#include <sstream>
#include <string_view>

#include "convoy/core/base/utf8.h"
#include "convoy/core/charts/svg_canvas.h"

namespace convoy::charts {
namespace {

// Number of bytes of `word` that fit into `width`, at least one letter. If a sign of kSigns fits,
// the bytes end after the last such sign.
size_t fitting_bytes(const std::string& word, double width, double size, bool bold) {
  constexpr std::string_view kSigns = "_-/.,:=";
  size_t fitting = 0, after_sign = 0;
  for (size_t at = 0; at < word.size();) {
    size_t end = at + 1;
    while (end < word.size() && continues_character(word[end])) ++end;
    if (at > 0 && text_width(std::string_view(word).substr(0, end), size, bold) > width) break;
    fitting = end;
    if (kSigns.find(word[at]) != kSigns.npos) after_sign = end;
    at = end;
  }
  return fitting < word.size() && after_sign > 0 ? after_sign : fitting;
}

// Breaks a word that is wider than `width` into lines. A word with a raised part is not broken.
void add_long_word(std::vector<std::string>& lines, std::string word, double width, double size,
                   bool bold) {
  while (text_width(word, size, bold) > width && word.find("^{") == word.npos) {
    const size_t end = fitting_bytes(word, width, size, bold);
    if (end == word.size()) break;
    lines.push_back(word.substr(0, end));
    word.erase(0, end);
  }
  lines.push_back(fitted(word, width, size, bold));
}

}  // namespace

std::string fitted(const std::string& text, double width, double size, bool bold) {
  if (text_width(text, size, bold) <= width) return text;
  std::string kept = text;
  while (!kept.empty() && text_width(kept + "\u2026", size, bold) > width) {
    while (!kept.empty() && continues_character(kept.back())) kept.pop_back();
    if (!kept.empty()) kept.pop_back();
  }
  return kept + "\u2026";
}

std::vector<std::string> wrapped(const std::string& text, double width, double size, bool bold) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::string longer = lines.empty() ? word : lines.back() + " " + word;
    if (!lines.empty() && text_width(longer, size, bold) <= width)
      lines.back() = longer;
    else
      add_long_word(lines, word, width, size, bold);
  }
  return lines;
}

ChartWords::ChartWords(const std::string& text, double width, double wanted_size, size_t most_lines,
                       bool bold) {
  for (const double share : {1.0, 0.85, 0.7}) {
    size = share * wanted_size;
    lines = wrapped(text, width, size, bold);
    if (lines.size() <= most_lines) return;
  }
  std::string rest = lines[most_lines - 1];
  for (size_t line = most_lines; line < lines.size(); ++line) rest += " " + lines[line];
  lines.resize(most_lines);
  lines.back() = fitted(rest, width, size, bold);
}

double ChartWords::more_height() const {
  return lines.size() > 1 ? line_height() * static_cast<double>(lines.size() - 1) : 0;
}

}  // namespace convoy::charts
