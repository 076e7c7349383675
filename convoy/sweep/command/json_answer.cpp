// SPDX-License-Identifier: Apache-2.0
#include "convoy/sweep/command/json_answer.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "convoy/base/json_depth.h"
#include "convoy/sweep/runner/task_failure.h"

namespace convoy::sweep {
namespace {

// Outside of texts only: a text may say NaN.
std::string with_nulls(const std::string& line) {
  std::string text;
  bool in_text = false;
  for (size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '"') in_text = !in_text;
    if (in_text && line[at] == '\\' && at + 1 < line.size()) text += line[at++];
    bool replaced = false;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (in_text || line.compare(at, word.size(), word) != 0) continue;
      text += "null";
      at += word.size() - 1;
      replaced = true;
      break;
    }
    if (!replaced) text += line[at];
  }
  return text;
}

}  // namespace

std::optional<nlohmann::json> json_line(const std::string& line) {
  if (line.find('{') == std::string::npos || nested_deeper(line)) return std::nullopt;
  auto object = nlohmann::json::parse(with_nulls(line), nullptr, false);
  return object.is_object() ? std::optional(std::move(object)) : std::nullopt;
}

const nlohmann::json* find_key(const nlohmann::json& object, const std::string& key) {
  if (!object.is_object()) return nullptr;
  if (const auto found = object.find(key); found != object.end()) return &*found;
  for (size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1)) {
    const auto outer = object.find(key.substr(0, dot));
    if (outer == object.end()) continue;
    if (const nlohmann::json* const inner = find_key(*outer, key.substr(dot + 1))) return inner;
  }
  return nullptr;
}

double number_of(const nlohmann::json& value, const std::string& key) {
  if (value.is_null()) return std::nan("");
  if (value.is_number()) return value.get<double>();
  jobs::Failure failure;
  failure.kind = "output";
  failure.message = fmt::format(
      "`{}` is no number: {}", key,
      value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).substr(0, 80));
  throw TaskFailure(std::move(failure));
}

}  // namespace convoy::sweep
