// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/logs/log_options.h"

#include <algorithm>
#include <optional>

#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/base/trimmed.h"

namespace convoy::launch {
namespace {

constexpr int kOutputBit = 1;
constexpr int kErrorsBit = 2;
constexpr int kBothBits = kOutputBit | kErrorsBit;

// A whole number >= 0 and nothing else.
std::optional<int> natural_number(std::string_view text) {
  text = trimmed(text, " ");
  const auto number = text_as<int>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> items;
  while (true) {
    const size_t comma = text.find(',');
    items.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

std::optional<int> stream_bits(std::string_view text) {
  const std::optional<int> bits = natural_number(text);
  return bits && *bits <= kBothBits ? bits : std::nullopt;
}

}  // namespace

StreamSelection StreamSelection::parse(std::string_view text, std::string_view flag) {
  const auto fail = [&](std::string_view found) {
    throw ConfigError(
        fmt::format("{} needs 0 (none), 1 (stdout), 2 (stderr), 3 (both) or RANK:VALUE,..., found "
                    "\"{}\"",
                    flag, found),
        {.hint = fmt::format("{} 3, or {} 0:3,1:2", flag, flag)});
  };
  StreamSelection selection;
  if (text.find(':') == std::string_view::npos) {
    const std::optional<int> bits = stream_bits(text);
    if (!bits) fail(text);
    selection.every_rank_ = *bits;
    return selection;
  }
  for (const std::string_view item : split_at_commas(text)) {
    const size_t colon = item.find(':');
    if (colon == std::string_view::npos) fail(item);
    const std::optional<int> rank = natural_number(item.substr(0, colon));
    const std::optional<int> bits = stream_bits(item.substr(colon + 1));
    if (!rank || !bits) fail(item);
    selection.by_rank_[*rank] = *bits;
  }
  return selection;
}

bool StreamSelection::contains(int local_rank, Stream stream) const {
  const auto named = by_rank_.find(local_rank);
  const int bits = named == by_rank_.end() ? every_rank_ : named->second;
  return (bits & (stream == Stream::Output ? kOutputBit : kErrorsBit)) != 0;
}

bool StreamSelection::empty() const {
  return every_rank_ == 0 && std::all_of(by_rank_.begin(), by_rank_.end(),
                                         [](const auto& entry) { return entry.second == 0; });
}

std::vector<int> StreamSelection::named_ranks() const {
  std::vector<int> ranks;
  for (const auto& [rank, bits] : by_rank_) ranks.push_back(rank);
  return ranks;
}

std::vector<std::string> absent_local_ranks(const LogOptions& options, int num_local_ranks) {
  std::vector<std::string> found;
  const auto look = [&](const std::string& flag, const std::vector<int>& named) {
    for (const int rank : named) {
      if (rank < num_local_ranks) continue;
      found.push_back(fmt::format("{} names local rank {}, this host has {}", flag, rank,
                                  num_local_ranks == 1
                                      ? std::string("only local rank 0")
                                      : fmt::format("local ranks 0 to {}", num_local_ranks - 1)));
      return;
    }
  };
  look("--redirects", options.redirects.named_ranks());
  look("--tee", options.tee.named_ranks());
  look("--local-ranks-filter", options.shown_local_ranks);
  return found;
}

std::vector<int> parse_local_ranks_filter(std::string_view text) {
  std::vector<int> ranks;
  if (text.empty()) return ranks;
  for (const std::string_view item : split_at_commas(text)) {
    const std::optional<int> rank = natural_number(item);
    if (!rank)
      throw ConfigError(
          fmt::format("--local-ranks-filter needs local ranks, found \"{}\" in \"{}\"", item, text),
          {.hint = "--local-ranks-filter 0,1"});
    ranks.push_back(*rank);
  }
  return ranks;
}

std::vector<std::string> parse_line_filters(std::string_view text, std::string_view flag) {
  std::vector<std::string> filters;
  if (text.empty()) return filters;
  filters.emplace_back();
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != ',') {
      filters.back() += text[at];
    } else if (text.substr(at, 2) == ",,") {
      filters.back() += ',';
      ++at;
    } else {
      filters.emplace_back();
    }
  }
  for (const std::string& filter : filters)
    if (filter.empty())
      throw ConfigError(
          fmt::format("{} has an empty string in \"{}\": it would match every line", flag, text),
          {.hint = "write ,, for a literal comma"});
  return filters;
}

}  // namespace convoy::launch
