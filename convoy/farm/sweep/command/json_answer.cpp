// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/json_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "convoy/core/base/json_depth.h"
#include "convoy/farm/sweep/runner/task_failure.h"

namespace convoy::sweep {
namespace {

// True when `text` is a number beyond the largest double.
bool out_of_range(const std::string& text) {
  const size_t first = text.starts_with('-') ? 1 : 0;
  if (text.find_first_not_of("0123456789", first) == first) return false;
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool is_small =
      text.find("e-") != std::string::npos || text.find("E-") != std::string::npos;
  return stop == end && error == std::errc::result_out_of_range && !is_small;
}

constexpr std::array<std::string_view, 3> kNotFinite = {"-Infinity", "Infinity", "NaN"};

bool is_not_finite(const std::string& text) {
  return std::find(kNotFinite.begin(), kNotFinite.end(), text) != kNotFinite.end();
}

// The characters of the number that begins at `at`; none when there is no number.
std::string number_at(const std::string& line, size_t at) {
  if (line[at] != '-' && (line[at] < '0' || line[at] > '9')) return "";
  return line.substr(at, line.find_first_not_of("0123456789+-.eE", at) - at);
}

// Rewrites tokens that the parser refuses though programs print them (NaN, Infinity) as JSON.
// Leaves strings alone: a string may contain NaN.
std::string readable(const std::string& line) {
  std::string text;
  bool in_text = false;
  for (size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '"') in_text = !in_text;
    if (in_text && line[at] == '\\' && at + 1 < line.size()) text += line[at++];
    std::string_view word;
    for (const std::string_view one : kNotFinite)
      if (!in_text && line.compare(at, one.size(), one) == 0) word = one;
    const std::string number = in_text || !word.empty() ? "" : number_at(line, at);
    if (!word.empty()) {
      text += fmt::format("\"{}\"", word);
      at += word.size() - 1;
    } else if (!number.empty()) {
      text += out_of_range(number) ? fmt::format("\"{}\"", number) : number;
      at += number.size() - 1;
    } else {
      text += line[at];
    }
  }
  return text;
}

}  // namespace

std::optional<nlohmann::json> json_line(const std::string& line) {
  if (line.find('{') == std::string::npos || nested_deeper(line)) return std::nullopt;
  auto object = nlohmann::json::parse(readable(line), nullptr, false);
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

bool is_number_as_text(const nlohmann::json& value) {
  return value.is_string() && (is_not_finite(value.get_ref<const std::string&>()) ||
                               out_of_range(value.get_ref<const std::string&>()));
}

double number_of(const nlohmann::json& value, const std::string& key) {
  if (value.is_number()) return value.get<double>();
  if (value.is_string() && is_not_finite(value.get<std::string>())) return std::nan("");
  jobs::Failure failure;
  if (value.is_string() && out_of_range(value.get<std::string>())) {
    failure.kind = "non_finite";
    failure.message =
        fmt::format("`{}` is out of the range of a double: {:.80}", key, value.get<std::string>());
    throw TaskFailure(std::move(failure));
  }
  failure.kind = "output";
  failure.message = fmt::format(
      "`{}` is not a number: {}", key,
      value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).substr(0, 80));
  throw TaskFailure(std::move(failure));
}

}  // namespace convoy::sweep
