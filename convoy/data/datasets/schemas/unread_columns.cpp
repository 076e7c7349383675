// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/unread_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "convoy/core/base/counted.h"

namespace convoy::data {
namespace {

// Limits the list. A file may have keys that differ from row to row, such as one column per user.
constexpr size_t kMostNamed = 20;

}  // namespace

void UnreadColumns::add(const std::vector<std::string>& columns) {
  for (const std::string& column : columns) {
    const auto [place, is_new] = place_of_.try_emplace(column, rows_of_.size());
    if (is_new) rows_of_.emplace_back(column, 0);
    ++rows_of_[place->second].second;
  }
}

std::vector<std::string> UnreadColumns::names() const {
  std::vector<std::string> names;
  for (const auto& [column, rows] : rows_of_) names.push_back(column);
  return names;
}

std::string UnreadColumns::sentence(std::string_view what) const {
  std::vector<std::string> named;
  for (const auto& [column, rows] : rows_of_)
    if (named.size() < kMostNamed)
      named.push_back(fmt::format("`{}` (in {})", column, counted(rows, "row")));
  if (rows_of_.size() > kMostNamed)
    named.push_back(fmt::format("and {} more", rows_of_.size() - kMostNamed));
  return fmt::format("{} {}: {}", counted(std::ssize(rows_of_), "column is", "columns are"), what,
                     fmt::join(named, ", "));
}

}  // namespace convoy::data
