// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/csv_record.h"

namespace convoy {

size_t CsvRecord::add_plain(std::string_view line, size_t at) {
  const std::string_view cell = line.substr(at, line.find(separator_, at) - at);
  cells_.back() = cell.substr(0, cell.find('\r'));
  return at + cells_.back().size();
}

size_t CsvRecord::add_quoted(std::string_view line, size_t at) {
  std::string& cell = cells_.back();
  for (;;) {
    const size_t quote = line.find('"', at);
    cell += line.substr(at, quote - at);
    if (quote == std::string_view::npos) {
      cell += '\n';
      return quote;
    }
    if (!line.substr(quote + 1).starts_with('"')) return quote + 1;
    cell += '"';
    at = quote + 2;
  }
}

CsvRecord::State CsvRecord::add(std::string_view line) {
  bool in_quotes = state_ == State::OpenQuote;
  if (!in_quotes) cells_.clear();
  rest_.clear();
  const std::string_view text = line.substr(0, line.size() - (line.ends_with('\r') ? 1 : 0));
  for (size_t at = 0;; ++at) {
    if (!in_quotes) {
      cells_.emplace_back();
      in_quotes = text.substr(at).starts_with('"');
      if (in_quotes) ++at;
    }
    at = in_quotes ? add_quoted(line, at) : add_plain(text, at);
    if (at == std::string_view::npos) return state_ = State::OpenQuote;
    if (at >= text.size()) return state_ = State::Whole;
    if (text[at] != separator_) {
      rest_ = line.substr(text[at] == '\r' ? at + 1 : at);
      return state_ = State::Broken;
    }
    in_quotes = false;
  }
}

}  // namespace convoy
