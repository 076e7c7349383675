// SPDX-License-Identifier: Apache-2.0
//
// Reads CSV and TSV (RFC 4180) line by line: quoted cells may hold separators, line ends and
// doubled quotes; LF and CRLF both end a line. A quote inside an unquoted cell is an ordinary
// character.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace convoy {

class CsvRecord {
 public:
  // Whole: the line ended the record. OpenQuote: a quoted cell goes on in the next line. Broken:
  // text follows a closed quote, or a CR stands within an unquoted cell.
  enum class State { Whole, OpenQuote, Broken };

  explicit CsvRecord(char separator) : separator_(separator) {}

  // Takes a line without its LF. It begins a new record, unless the last one left a quote open.
  State add(std::string_view line);

  std::vector<std::string>& cells() { return cells_; }  // cells of the record so far
  const std::vector<std::string>& cells() const { return cells_; }
  const std::string& rest() const { return rest_; }  // Broken: the text after the last cell

 private:
  // Both take the text of a cell from `at` on, and return the position after the cell; npos: a
  // quote is open.
  size_t add_plain(std::string_view line, size_t at);
  size_t add_quoted(std::string_view line, size_t at);

  char separator_;
  State state_ = State::Whole;
  std::vector<std::string> cells_;
  std::string rest_;
};

}  // namespace convoy
