// SPDX-License-Identifier: Apache-2.0
//
// The last lines that a rank wrote, for the report of a failure. Cost per chunk does not grow with
// the number of lines in it.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "convoy/launch/logs/drawn_line.h"
#include "convoy/launch/logs/log_options.h"

namespace convoy::launch {

class LastLines {
 public:
  static constexpr size_t kNumLines = 20;
  static constexpr size_t kLongestLineBytes = 4 << 10;  // longer ones are cut

  void add(Stream stream, std::string_view bytes);
  // The lines joined by '\n'. The unfinished lines of the two streams come last.
  std::string text() const;

 private:
  void push(std::string_view line);

  std::deque<std::string> lines_;
  DrawnLine unfinished_[2] = {DrawnLine(kLongestLineBytes), DrawnLine(kLongestLineBytes)};
};

}  // namespace convoy::launch
