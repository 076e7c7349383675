// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/logs/line_prefix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

namespace convoy::launch {
namespace {

// These colours suit white and black terminals; red and yellow are left for faults.
constexpr const char* kColors[] = {"\x1b[36m", "\x1b[32m", "\x1b[35m", "\x1b[34m"};
constexpr const char* kPlain = "\x1b[0m";

// Does what Python's string.Template.safe_substitute() does with torchrun's three macros.
std::string fill_in(const std::string& pattern, const std::map<std::string, std::string>& macros) {
  std::string filled;
  for (size_t at = 0; at < pattern.size();) {
    if (pattern.compare(at, 2, "$$") == 0) {
      filled += '$';
      at += 2;
      continue;
    }
    size_t found_bytes = 0;
    for (const auto& [name, value] : macros) {
      for (const std::string& spelling : {"${" + name + "}", "$" + name}) {
        if (found_bytes > 0 || pattern.compare(at, spelling.size(), spelling) != 0) continue;
        const size_t after = at + spelling.size();
        const bool goes_on = spelling.back() != '}' && after < pattern.size() &&
                             (std::isalnum(static_cast<unsigned char>(pattern[after])) != 0 ||
                              pattern[after] == '_');
        if (goes_on) continue;
        filled += value;
        found_bytes = spelling.size();
      }
    }
    if (found_bytes == 0) filled += pattern[at];
    at += std::max<size_t>(found_bytes, 1);
  }
  return filled;
}

}  // namespace

std::string rank_ranges(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string text;
  for (size_t begin = 0; begin < ranks.size();) {
    size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[begin]);
    if (end - begin > 1) text += fmt::format("-{}", ranks[end - 1]);
    begin = end;
  }
  return text;
}

LinePrefixes::LinePrefixes(const LogOptions& options)
    : form_(options.prefix),
      timestamps_(options.timestamps),
      templated_(!options.prefix_template.empty()),
      host_(options.host),
      first_global_rank_(options.first_global_rank) {
  for (int local_rank = 0; local_rank < options.num_local_ranks; ++local_rank) {
    const std::string rank = std::to_string(first_global_rank_ + local_rank);
    of_one_.push_back(
        templated_ ? fill_in(options.prefix_template, {{"role_name", options.role},
                                                       {"rank", rank},
                                                       {"local_rank", std::to_string(local_rank)}})
                   : named(rank, false));
  }
}

std::string LinePrefixes::named(const std::string& ranks, bool several) const {
  if (form_ == LinePrefix::HostRank) return fmt::format("[{} {}]", host_, ranks);
  return fmt::format("[{} {}]", several ? "ranks" : "rank", ranks);
}

void LinePrefixes::append(std::string& text, std::span<const int> local_ranks, Time time,
                          bool color) {
  const int rank = *std::min_element(local_ranks.begin(), local_ranks.end());
  const bool alone = local_ranks.size() == 1;
  if (alone && rank == last_rank_ && time == last_time_ && color == last_color_) {
    text += last_;
    return;
  }
  const size_t begin = text.size();
  if (color) text += kColors[static_cast<size_t>(rank) % std::size(kColors)];
  append_named(text, local_ranks);
  if (timestamps_ && !templated_) append_time(text, time);
  if (color) text += kPlain;
  if (!templated_) text += ' ';
  if (!alone) return;
  last_.assign(text, begin);
  last_rank_ = rank;
  last_time_ = time;
  last_color_ = color;
}

void LinePrefixes::append_named(std::string& text, std::span<const int> local_ranks) const {
  if (local_ranks.size() == 1) {
    text += of_one_[static_cast<size_t>(local_ranks.front())];
    return;
  }
  std::vector<int> ranks(local_ranks.begin(), local_ranks.end());
  for (int& rank : ranks) rank += first_global_rank_;
  text += named(rank_ranges(std::move(ranks)), true);
}

void LinePrefixes::append_time(std::string& text, Time time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const std::time_t second = static_cast<std::time_t>(seconds.count());
  if (second != second_) {
    std::tm parts{};
    ::localtime_r(&second, &parts);
    second_text_ = fmt::format(" {:02d}:{:02d}:{:02d}.", parts.tm_hour, parts.tm_min, parts.tm_sec);
    second_ = second;
  }
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(since - seconds).count();
  text += second_text_;
  fmt::format_to(std::back_inserter(text), "{:03d}", ms);
}

}  // namespace convoy::launch
