// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/logs/line_fold.h"

#include <algorithm>
#include <functional>

namespace convoy::launch {
namespace {

uint64_t hash_of(Stream stream, std::string_view text) {
  return std::hash<std::string_view>{}(text) + static_cast<uint64_t>(stream);
}

}  // namespace

LineFold::LineFold(std::chrono::milliseconds window, int num_local_ranks)
    : window_(window), last_number_(static_cast<size_t>(num_local_ranks), 0) {
  for (std::vector<bool>& writes : writes_) writes.resize(static_cast<size_t>(num_local_ranks));
}

void LineFold::set_writer(int local_rank, Stream stream, bool writes) {
  std::vector<bool>& by_rank = writes_[static_cast<size_t>(stream)];
  size_t& count = num_writers_[static_cast<size_t>(stream)];
  if (by_rank[static_cast<size_t>(local_rank)]) --count;
  by_rank[static_cast<size_t>(local_rank)] = writes;
  if (writes) ++count;
}

void LineFold::add(int local_rank, Stream stream, std::string_view text, Clock::time_point now,
                   std::chrono::system_clock::time_point time) {
  uint64_t& last = last_number_[static_cast<size_t>(local_rank)];
  Numbers& numbers = by_hash_[hash_of(stream, text)];
  // A rank may only join a line behind the last one it wrote.
  const auto begin = numbers.all.begin() + static_cast<std::ptrdiff_t>(numbers.begin);
  const auto next = std::upper_bound(begin, numbers.all.end(), last);
  if (next != numbers.all.end()) {
    FoldedLine& same = line(*next);
    if (same.stream == stream && same.text == text) {
      same.local_ranks.push_back(local_rank);
      last = *next;
      return;
    }
  }
  last = first_number_ + held_.size();
  numbers.all.push_back(last);
  held_.push_back({stream, std::string(text), {local_rank}, now + window_, time});
  held_bytes_ += text.size();
}

bool LineFold::due(Clock::time_point now) const {
  if (held_.empty()) return false;
  const FoldedLine& oldest = held_.front();
  return now >= oldest.due || held_bytes_ > kMostHeldBytes || held_.size() > kMostHeldLines ||
         complete(oldest);
}

bool LineFold::complete(const FoldedLine& line) const {
  const size_t stream = static_cast<size_t>(line.stream);
  if (line.local_ranks.size() < num_writers_[stream]) return false;
  // Some of those that wrote it may have ended.
  const auto written = std::count_if(
      line.local_ranks.begin(), line.local_ranks.end(),
      [&](int local_rank) { return writes_[stream][static_cast<size_t>(local_rank)]; });
  return static_cast<size_t>(written) == num_writers_[stream];
}

std::optional<LineFold::Clock::time_point> LineFold::next_due() const {
  if (held_.empty()) return std::nullopt;
  return held_.front().due;
}

FoldedLine LineFold::pop() {
  FoldedLine oldest = std::move(held_.front());
  held_.pop_front();
  ++first_number_;
  held_bytes_ -= oldest.text.size();
  const auto entry = by_hash_.find(hash_of(oldest.stream, oldest.text));
  if (++entry->second.begin == entry->second.all.size()) by_hash_.erase(entry);
  return oldest;
}

}  // namespace convoy::launch
