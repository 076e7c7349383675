// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/logs/line_fold.h"

#include <algorithm>
#include <utility>

namespace convoy::launch {
namespace {

// At most this many of a rank's own lines are shown before a line that it shares with other ranks.
constexpr size_t kFarthest = 32;

size_t stream_index(Stream stream) { return static_cast<size_t>(stream); }

}  // namespace

LineFold::LineFold(std::chrono::milliseconds window, int num_local_ranks)
    : window_(window), held_(static_cast<size_t>(num_local_ranks)) {
  for (std::vector<bool>& writes : writes_) writes.resize(static_cast<size_t>(num_local_ranks));
}

void LineFold::set_writer(int local_rank, Stream stream, bool writes) {
  std::vector<bool>& by_rank = writes_[stream_index(stream)];
  size_t& count = num_writers_[stream_index(stream)];
  if (by_rank[static_cast<size_t>(local_rank)]) --count;
  by_rank[static_cast<size_t>(local_rank)] = writes;
  if (writes) ++count;
  look_again_ = true;
}

void LineFold::add(int local_rank, Stream stream, std::string_view text, Clock::time_point now,
                   std::chrono::system_clock::time_point time) {
  Texts& texts = texts_[stream_index(stream)];
  auto entry = texts.find(text);
  if (entry == texts.end()) {
    entry = texts.emplace(text, std::vector<Holder>()).first;
    held_bytes_ += text.size();
  }
  std::vector<Holder>& holders = entry->second;
  const auto holder = std::find_if(holders.begin(), holders.end(),
                                   [&](const Holder& one) { return one.local_rank == local_rank; });
  if (holder == holders.end())
    holders.push_back({local_rank, 1});
  else
    ++holder->num_lines;
  lines_of(local_rank).push_back({&*entry, stream, next_number_, now + window_, time});
  arrivals_.push_back({local_rank, next_number_++});
  ++num_held_;
  if (oldest().text == &*entry) look_again_ = true;
}

bool LineFold::due(Clock::time_point now) {
  if (!ready_.empty()) return true;
  if (num_held_ == 0) return false;
  const Held& line = oldest();
  if (now >= line.due || held_bytes_ > kMostHeldBytes || num_held_ > kMostHeldLines) return true;
  return std::exchange(look_again_, false) && complete(line);
}

std::optional<LineFold::Clock::time_point> LineFold::next_due() const {
  if (num_held_ == 0) return std::nullopt;
  return oldest().due;
}

FoldedLine LineFold::pop() {
  if (ready_.empty()) release();
  FoldedLine next = std::move(ready_.front());
  ready_.pop_front();
  return next;
}

// True when every rank that may still write has written the line and can be joined to it.
bool LineFold::complete(const Held& line) const {
  const std::vector<bool>& writes = writes_[stream_index(line.stream)];
  if (line.text->second.size() < num_writers_[stream_index(line.stream)]) return false;
  for (size_t rank = 0; rank < writes.size(); ++rank)
    if (writes[rank] && !lines_before(static_cast<int>(rank), line)) return false;
  return true;
}

// Number of the rank's lines before its first line with the text of `line`. Nothing when another
// rank also holds one of them: showing that line first would separate it from its equals.
std::optional<size_t> LineFold::lines_before(int local_rank, const Held& line) const {
  const std::deque<Held>& lines = lines_of(local_rank);
  for (size_t before = 0; before < std::min(lines.size(), kFarthest); ++before) {
    const Held& other = lines[before];
    if (other.text == line.text) return before;
    if (other.text->second.size() > 1) return std::nullopt;
  }
  return std::nullopt;
}

FoldedLine LineFold::take_front(int local_rank) {
  const Held line = lines_of(local_rank).front();
  lines_of(local_rank).pop_front();
  --num_held_;
  FoldedLine taken{line.stream, {}, {local_rank}, line.time};
  std::vector<Holder>& holders = line.text->second;
  const auto holder = std::find_if(holders.begin(), holders.end(),
                                   [&](const Holder& one) { return one.local_rank == local_rank; });
  if (--holder->num_lines == 0) holders.erase(holder);
  if (holders.empty()) {
    held_bytes_ -= line.text->first.size();
    Texts& texts = texts_[stream_index(line.stream)];
    taken.text = std::move(texts.extract(texts.find(line.text->first)).key());
  } else {
    taken.text = line.text->first;
  }
  return taken;
}

void LineFold::release() {
  const int first = arrivals_.front().local_rank;
  const Held line = oldest();
  const std::vector<Holder> holders = line.text->second;
  std::vector<int> joined = {first};
  // The rank `first` keeps its line until the end of this loop, so line.text stays valid.
  for (const auto& [rank, num_lines] : holders) {
    if (rank == first) continue;
    const std::optional<size_t> before = lines_before(rank, line);
    if (!before) continue;
    for (size_t count = 0; count < *before; ++count) ready_.push_back(take_front(rank));
    take_front(rank);
    joined.push_back(rank);
  }
  ready_.push_back(take_front(first));
  ready_.back().local_ranks = std::move(joined);
  // The lines of a rank leave in the order of their arrival, so an arrival with a smaller number
  // than the rank's first held line has left.
  const auto has_left = [&](const Arrival& arrival) {
    const std::deque<Held>& lines = lines_of(arrival.local_rank);
    return lines.empty() || lines.front().number > arrival.number;
  };
  while (!arrivals_.empty() && has_left(arrivals_.front())) arrivals_.pop_front();
  look_again_ = true;
}

}  // namespace convoy::launch
