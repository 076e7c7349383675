// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/text_table.h"
#include "convoy/launch/place/preflight.h"

namespace convoy::launch {

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::Ok:
      return "ok";
    case Severity::Warning:
      return "warning";
    case Severity::Error:
      return "error";
  }
  throw StateError("a severity without a name");
}

Severity worst(const std::vector<Finding>& findings) {
  Severity found = Severity::Ok;
  for (const Finding& finding : findings) found = std::max(found, finding.severity);
  return found;
}

std::string preflight_table(const std::vector<Finding>& findings) {
  std::vector<std::vector<std::string>> rows = {{"result", "check", "found"}};
  for (const Finding& finding : findings) {
    rows.push_back({std::string(name_of(finding.severity)), finding.check, finding.found});
    if (!finding.to_do.empty()) rows.push_back({" ", " ", "-> " + finding.to_do});
  }
  return text_table(rows);
}

std::string preflight_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Finding& finding : findings)
    rows.push_back({{"result", name_of(finding.severity)},
                    {"check", finding.check},
                    {"found", finding.found},
                    {"to_do", finding.to_do}});
  return rows.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace convoy::launch
