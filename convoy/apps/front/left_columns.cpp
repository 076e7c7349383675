// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/left_columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/core/base/counted.h"

namespace convoy::apps {
namespace {

// Rows with keys of their own, such as one column per user, must not fill the screen.
constexpr size_t kMostNamed = 20;

}  // namespace

void LeftColumns::add(const std::vector<std::string>& columns) {
  for (const std::string& column : columns) {
    const auto known = std::find_if(rows_of_.begin(), rows_of_.end(),
                                    [&](const auto& entry) { return entry.first == column; });
    if (known == rows_of_.end())
      rows_of_.emplace_back(column, 1);
    else
      ++known->second;
  }
}

void LeftColumns::tell(const Context& context, const std::string& hint) const {
  if (rows_of_.empty()) return;
  std::vector<std::string> named;
  for (const auto& [column, rows] : rows_of_)
    if (named.size() < kMostNamed)
      named.push_back(fmt::format("`{}` (in {})", column, counted(rows, "row")));
  if (rows_of_.size() > kMostNamed)
    named.push_back(fmt::format("and {} more", rows_of_.size() - kMostNamed));
  context.log().warning(fmt::format("{} not kept: {}{}",
                                    counted(std::ssize(rows_of_), "column is", "columns are"),
                                    fmt::join(named, ", "), hint.empty() ? "" : "; " + hint));
}

nlohmann::ordered_json LeftColumns::names() const {
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  for (const auto& [column, rows] : rows_of_) names.push_back(column);
  return names;
}

}  // namespace convoy::apps
