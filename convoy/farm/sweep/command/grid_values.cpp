// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/grid_values.h"

#include <algorithm>
#include <map>
#include <optional>

#include "convoy/core/base/error.h"
#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {
namespace {

// As tables see it: a text that is a number is that number.
nlohmann::json shown_value(const nlohmann::json& value) {
  if (!value.is_string()) return value;
  return number_json(value.get_ref<const std::string&>()).value_or(value);
}

std::string spelling(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void check_grid_values(const std::string& name, const std::vector<nlohmann::json>& values) {
  CONVOY_CHECK(!values.empty(), ConfigError, "the grid has no value of `{}`", name);
  std::map<nlohmann::json, nlohmann::json> known;
  for (const nlohmann::json& value : values) {
    const auto [first, added] = known.emplace(shown_value(value), value);
    CONVOY_CHECK(added, ConfigError, "the grid has a value of `{}` twice, as {} and as {}", name,
                 spelling(first->second), spelling(value));
  }
}

std::vector<std::string> comma_separated(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace convoy::sweep
