// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/core/base/text_table.h"

namespace convoy::launch {
namespace {

std::string joined(const std::string& first, const std::string& second) {
  return first.empty() || second.empty() ? first + second : first + ", " + second;
}

}  // namespace

std::vector<Origin> merge_origins(const std::vector<Origin>& weaker,
                                  const std::vector<Origin>& stronger) {
  std::vector<Origin> merged = weaker;
  for (const Origin& row : stronger) {
    const auto below = std::find_if(merged.begin(), merged.end(),
                                    [&](const Origin& other) { return other.field == row.field; });
    if (below == merged.end()) {
      merged.push_back(row);
      continue;
    }
    Origin laid = row;
    if (!below->value.empty() && below->value != row.value && below->decided_by != row.decided_by)
      laid.overrode =
          joined(row.overrode, fmt::format("{} of {}", below->value, below->decided_by));
    laid.overrode = joined(laid.overrode, below->overrode);
    *below = laid;
  }
  return merged;
}

std::string origin_table(const std::vector<Origin>& origins) {
  std::vector<std::vector<std::string>> rows = {{"field", "value", "decided by", "overrode"}};
  for (const Origin& row : origins)
    rows.push_back({row.field, row.value, row.decided_by, row.overrode});
  return text_table(rows);
}

std::string origin_json(const std::vector<Origin>& origins) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Origin& row : origins)
    rows.push_back({{"field", row.field},
                    {"value", row.value},
                    {"decided_by", row.decided_by},
                    {"overrode", row.overrode}});
  return rows.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace convoy::launch
