// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/logs/last_lines.h"

#include <fmt/ranges.h>

namespace convoy::launch {

void LastLines::add(Stream stream, std::string_view bytes) {
  DrawnLine& unfinished = unfinished_[static_cast<size_t>(stream)];
  const size_t last_end = bytes.rfind('\n');
  if (last_end == std::string_view::npos) {
    unfinished.append(bytes);
    return;
  }
  // Search backwards, so that only the last kNumLines lines are read.
  size_t begin = last_end;
  for (size_t found = 0; begin > 0; ++found) {
    const size_t before = bytes.rfind('\n', begin - 1);
    if (before == std::string_view::npos || found + 1 == kNumLines) {
      begin = before == std::string_view::npos ? 0 : before + 1;
      break;
    }
    begin = before;
  }
  std::string_view lines = bytes.substr(begin, last_end + 1 - begin);
  if (begin == 0) {
    const size_t end = lines.find('\n');
    unfinished.append(lines.substr(0, end));
    push(unfinished.text());
    lines.remove_prefix(end + 1);
  }
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    push(last_drawn(lines.substr(0, end)));
    lines.remove_prefix(end + 1);
  }
  unfinished.clear();
  unfinished.append(bytes.substr(last_end + 1));
}

void LastLines::push(std::string_view line) {
  lines_.emplace_back(line.substr(0, kLongestLineBytes));
  if (lines_.size() > kNumLines) lines_.pop_front();
}

std::string LastLines::text() const {
  std::deque<std::string> lines = lines_;
  for (const DrawnLine& line : unfinished_)
    if (!line.text().empty()) lines.push_back(line.text());
  while (lines.size() > kNumLines) lines.pop_front();
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace convoy::launch
