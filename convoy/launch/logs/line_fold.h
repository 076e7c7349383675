// SPDX-License-Identifier: Apache-2.0
//
// Holds console lines for a moment, so that a line that several ranks write at the same time is
// shown once. Lines come out in the order in which the first of each kind came in; the order of the
// lines of one rank never changes.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "convoy/launch/logs/log_options.h"

namespace convoy::launch {

struct FoldedLine {
  Stream stream = Stream::Output;
  std::string text;
  std::vector<int> local_ranks;  // in the order in which they wrote it
  std::chrono::steady_clock::time_point due;
  std::chrono::system_clock::time_point time;  // of the first
};

class LineFold {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kMostHeldBytes = 1 << 20;  // with more the oldest lines are due at once
  static constexpr size_t kMostHeldLines = 16'384;

  LineFold(std::chrono::milliseconds window, int num_local_ranks);

  // Which ranks may still write lines to a stream, none at first: a line that all of them wrote is
  // due.
  void set_writer(int local_rank, Stream stream, bool writes);

  void add(int local_rank, Stream stream, std::string_view text, Clock::time_point now,
           std::chrono::system_clock::time_point time);

  bool empty() const { return held_.empty(); }
  bool due(Clock::time_point now) const;  // the oldest line is
  std::optional<Clock::time_point> next_due() const;
  FoldedLine pop();  // the oldest line

 private:
  // Held lines of one text, oldest first. Lines are numbered as they come in.
  struct Numbers {
    std::vector<uint64_t> all;
    size_t begin = 0;  // those before are gone
  };

  bool complete(const FoldedLine& line) const;
  FoldedLine& line(uint64_t number) { return held_[number - first_number_]; }

  std::chrono::milliseconds window_;
  std::deque<FoldedLine> held_;
  uint64_t first_number_ = 1;
  size_t held_bytes_ = 0;
  std::vector<uint64_t> last_number_;  // by rank: the line it wrote last; 0 = none
  std::unordered_map<uint64_t, Numbers> by_hash_;
  std::vector<bool> writes_[2];  // by stream and rank
  size_t num_writers_[2] = {};
};

}  // namespace convoy::launch
