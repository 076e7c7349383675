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

// "0-3,7". Sorts the ranks.
std::string rank_ranges(std::vector<int> ranks);

class LinePrefixes {
 public:
  using Time = std::chrono::system_clock::time_point;

  explicit LinePrefixes(const LogOptions& options);

  // Appends the prefix of a line that these local ranks wrote, one at least.
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
  std::vector<std::string> of_one_;  // by local rank
  std::string second_text_;          // text for second_
  std::time_t second_ = -1;
  // The last prefix of one rank: lines come in chunks of one rank and one time.
  std::string last_;
  int last_rank_ = -1;
  Time last_time_;
  bool last_color_ = false;
};

}  // namespace convoy::launch
