// SPDX-License-Identifier: Apache-2.0
//
// The prefix of a console line: rank, host and time.
#pragma once

#include <chrono>
#include <ctime>
#include <span>
#include <string>
#include <vector>

#include "convoy/launch/logs/log_options.h"

namespace convoy::launch {

// Returns text such as "0-3,7". Sorts the ranks.
std::string rank_ranges(std::vector<int> ranks);

class LinePrefixes {
 public:
  using Time = std::chrono::system_clock::time_point;

  explicit LinePrefixes(const LogOptions& options);

  // Appends the prefix of a line that `local_ranks`, at least one, wrote.
  void append(std::string& text, std::span<const int> local_ranks, Time time, bool color);

 private:
  void append_named(std::string& text, std::span<const int> local_ranks) const;
  std::string named(const std::string& ranks, bool several) const;
  void append_time(std::string& text, Time time);

  LinePrefix form_;
  bool timestamps_;
  bool templated_;
  std::string host_;
  int first_global_rank_;
  std::vector<std::string> of_one_;  // prefixes of single ranks, by local rank
  std::string second_text_;          // second_ as text
  std::time_t second_ = -1;
  // The last prefix of a single rank. Most lines have the same rank and time as the line before.
  std::string last_;
  int last_rank_ = -1;
  Time last_time_;
  bool last_color_ = false;
};

}  // namespace convoy::launch
