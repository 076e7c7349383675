// SPDX-License-Identifier: Apache-2.0
//
// Holds console lines for a moment, so that a line that several ranks write at the same time is
// shown once. A folded line comes out at the place of its first copy, after all lines that its
// ranks had written before their copies. The order of the lines of one rank never changes.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
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
  std::vector<int> local_ranks;                // in the order in which they wrote it
  std::chrono::system_clock::time_point time;  // when the first rank wrote it
};

class LineFold {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kMostHeldBytes = 1 << 20;  // above this the oldest lines are due at once
  static constexpr size_t kMostHeldLines = 16'384;

  LineFold(std::chrono::milliseconds window, int num_local_ranks);

  // Sets whether a rank may still write lines to a stream; at first no rank may. A line is due once
  // every rank that may write to its stream has written it.
  void set_writer(int local_rank, Stream stream, bool writes);

  void add(int local_rank, Stream stream, std::string_view text, Clock::time_point now,
           std::chrono::system_clock::time_point time);

  bool empty() const { return num_held_ == 0 && ready_.empty(); }
  bool due(Clock::time_point now);  // true when pop() should be called
  std::optional<Clock::time_point> next_due() const;
  FoldedLine pop();  // returns the next line; there must be one

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  struct Holder {
    int local_rank;
    size_t num_lines;
  };
  // By text: the ranks that hold lines with this text, in the order of their first such line.
  using Texts = std::unordered_map<std::string, std::vector<Holder>, Hash, std::equal_to<>>;
  struct Held {
    Texts::value_type* text;  // entry of texts_, which exists while a line with this text is held
    Stream stream;
    uint64_t number;  // lines are numbered as they come in
    Clock::time_point due;
    std::chrono::system_clock::time_point time;
  };
  struct Arrival {
    int local_rank;
    uint64_t number;
  };

  std::deque<Held>& lines_of(int local_rank) { return held_[static_cast<size_t>(local_rank)]; }
  const std::deque<Held>& lines_of(int local_rank) const {
    return held_[static_cast<size_t>(local_rank)];
  }
  const Held& oldest() const { return lines_of(arrivals_.front().local_rank).front(); }
  bool complete(const Held& line) const;
  std::optional<size_t> lines_before(int local_rank, const Held& line) const;
  FoldedLine take_front(int local_rank);
  void release();

  std::chrono::milliseconds window_;
  Texts texts_[2];                      // by stream
  std::vector<std::deque<Held>> held_;  // by rank
  std::deque<Arrival> arrivals_;        // lines in order of arrival; the first one is still held
  std::deque<FoldedLine> ready_;        // released
  uint64_t next_number_ = 0;
  size_t num_held_ = 0;
  size_t held_bytes_ = 0;
  bool look_again_ = true;       // the oldest line may have become complete
  std::vector<bool> writes_[2];  // by stream and rank
  size_t num_writers_[2] = {};
};

}  // namespace convoy::launch
