// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/results/fitted_table.h"

#include <algorithm>
#include <utility>

#include "convoy/core/base/text_table.h"
#include "convoy/core/base/utf8.h"

namespace convoy::sweep {
namespace {

constexpr size_t kBetween = 2;     // blanks between columns
constexpr size_t kLeastRoom = 24;  // least width of the last column
constexpr size_t kGoodRoom = 40;   // width of the last column if other columns may move below

using Column = std::vector<std::string>;  // heading, then the cells

// Pieces of at most `room` bytes, cut at blanks if the text has blanks.
std::vector<std::string> folded(const std::string& text, size_t room) {
  std::vector<std::string> lines;
  size_t begin = 0;
  while (text.size() - begin > room) {
    size_t end = text.rfind(' ', begin + room);
    if (end == std::string::npos || end <= begin)
      end = std::max(begin + 1, whole_characters_bytes(text, begin + room));
    lines.push_back(text.substr(begin, end - begin));
    begin = end + (text[end] == ' ' ? 1 : 0);
  }
  lines.push_back(text.substr(begin));
  return lines;
}

// The words of a heading: "student_" and "dim", "loss" and "MEDIAN".
std::vector<std::string> words_of(const std::string& heading) {
  std::vector<std::string> words(1);
  for (const char letter : heading) {
    if (letter != ' ') words.back() += letter;
    if (letter == ' ' || letter == '_') words.emplace_back();
  }
  if (words.size() > 1 && words.back().empty()) words.pop_back();
  return words;
}

std::vector<std::string> folded_heading(const std::string& heading, size_t room) {
  std::vector<std::string> lines(1);
  for (const std::string& word : words_of(heading)) {
    const bool goes_on = lines.back().ends_with('_') || lines.back().empty();
    if (lines.back().size() + (goes_on ? 0 : 1) + word.size() <= room)
      lines.back() += (goes_on ? "" : " ") + word;
    else
      lines.push_back(word);
  }
  return lines;
}

size_t widest(const Column& column, size_t from = 0) {
  size_t most = 1;
  for (size_t row = from; row < column.size(); ++row) most = std::max(most, column[row].size());
  return most;
}

// The width of a column whose heading is folded into lines of one word.
size_t folded_width(const Column& column) {
  size_t width = widest(column, 1);
  for (const std::string& word : words_of(column.front())) width = std::max(width, word.size());
  return width;
}

size_t sum_of(const std::vector<size_t>& widths) {
  size_t sum = 0;
  for (const size_t one : widths) sum += one + kBetween;
  return sum - (widths.empty() ? 0 : kBetween);
}

std::vector<size_t> widths_of(const std::vector<Column>& columns,
                              size_t (*width)(const Column& column)) {
  std::vector<size_t> widths;
  for (const Column& column : columns) widths.push_back(width(column));
  return widths;
}

// The rows as text. A cell that is wider than its column continues in the next line.
std::string drawn(const std::vector<Column>& columns, const std::vector<size_t>& widths,
                  size_t words, bool ends_in_words) {
  TableRows rows;
  for (size_t row = 0; row < columns.front().size(); ++row) {
    std::vector<std::vector<std::string>> cells;
    size_t lines = 1;
    for (size_t at = 0; at < columns.size(); ++at) {
      cells.push_back(row == 0 ? folded_heading(columns[at][row], widths[at])
                               : folded(columns[at][row], widths[at]));
      lines = std::max(lines, cells.back().size());
    }
    for (size_t line = 0; line < lines; ++line) {
      rows.emplace_back();
      for (const auto& cell : cells) rows.back().push_back(line < cell.size() ? cell[line] : "");
    }
  }
  return text_table(rows, {.first_number = words,
                           .end_numbers = columns.size() - (ends_in_words ? 1 : 0),
                           .empty = ""});
}

// Splits the table into parts below each other. Each part begins with the name columns; the word
// columns belong to the first part.
std::string divided(const std::vector<Column>& columns, const TableFit& fit) {
  const size_t names = fit.names;
  const auto room = static_cast<size_t>(fit.width);
  std::vector<size_t> widths = widths_of(columns, folded_width);
  const size_t last = columns.size() - 1;
  const size_t of_words = std::min(kGoodRoom, widest(columns[last]));
  size_t of_names = 0;
  for (size_t at = 0; at < names; ++at) of_names += widths[at] + kBetween;
  const size_t most = std::max(kLeastRoom, room > of_names ? room - of_names : 0);
  for (size_t at = names; at < last; ++at) widths[at] = std::min(widths[at], most);
  std::string text;
  for (size_t next = names; next < last || text.empty();) {
    const bool first = text.empty();
    std::vector<Column> part(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(names));
    std::vector<size_t> of_part(widths.begin(),
                                widths.begin() + static_cast<std::ptrdiff_t>(names));
    const size_t kept = first ? of_words + kBetween : 0;
    for (; next < last; ++next) {
      of_part.push_back(widths[next]);
      if (part.size() > names && sum_of(of_part) + kept > room) {
        of_part.pop_back();
        break;
      }
      part.push_back(columns[next]);
    }
    if (first) {
      const size_t used = sum_of(of_part) + kBetween;
      of_part.push_back(
          std::min(widest(columns[last]), std::max(kLeastRoom, room > used ? room - used : 0)));
      part.push_back(columns[last]);
    }
    text += (first ? "" : "\n") + drawn(part, of_part, fit.words, first);
  }
  return text;
}

}  // namespace

std::string fitted_table(TableRows rows, const TableFit& fit) {
  std::vector<Column> columns(rows.front().size());
  for (auto& row : rows)
    for (size_t at = 0; at < columns.size(); ++at) columns[at].push_back(std::move(row[at]));
  const auto natural = [](const Column& column) { return widest(column); };
  const auto room = static_cast<size_t>(fit.width);
  for (size_t (*const width_of)(const Column&) : {+natural, &folded_width}) {
    std::vector<size_t> widths = widths_of(columns, width_of);
    const size_t before = sum_of(widths) - widths.back();
    if (fit.width <= 0 || sum_of(widths) <= room) return drawn(columns, widths, fit.words, true);
    widths.back() = std::max(kLeastRoom, room > before ? room - before : 0);
    if (sum_of(widths) <= room) return drawn(columns, widths, fit.words, true);
  }
  const std::vector<size_t> widths = widths_of(columns, folded_width);
  const std::vector<size_t> of_names(widths.begin(),
                                     widths.begin() + static_cast<std::ptrdiff_t>(fit.names));
  if (sum_of(of_names) <= room / 2) return divided(columns, fit);
  Column numbers = {"ROW"};
  for (size_t row = 1; row < columns.front().size(); ++row) numbers.push_back(std::to_string(row));
  columns.insert(columns.begin(), std::move(numbers));
  return divided(columns, {.names = 1, .words = 1, .width = fit.width});
}

}  // namespace convoy::sweep
