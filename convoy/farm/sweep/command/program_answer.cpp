// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/program_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "convoy/core/base/json_depth.h"
#include "convoy/core/base/lower_case.h"
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

bool begins_value(char letter) {
  return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
         (letter >= 'A' && letter <= 'Z') || letter == '-' || letter == '+' || letter == '.' ||
         static_cast<unsigned char>(letter) >= 0x80;
}

// Rewrites words that the parser refuses, although programs print them (nan, -Infinity, 1e999), as
// texts. Existing texts are not changed; they may contain such words.
std::string readable(std::string_view line) {
  std::string text;
  bool in_text = false;
  for (size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '"') in_text = !in_text;
    if (in_text && line[at] == '\\' && at + 1 < line.size()) text += line[at++];
    if (in_text || !begins_value(line[at])) {
      text += line[at];
      continue;
    }
    const size_t end = std::min(line.find_first_of(",:{}[]\" \t\r\n", at), line.size());
    const std::string word(line.substr(at, end - at));
    text += is_not_finite(word) || out_of_range(word) ? fmt::format("\"{}\"", word) : word;
    at = end - 1;
  }
  return text;
}

}  // namespace

bool is_not_finite(std::string_view text) {
  // Spellings of Python, C, C++, Rust, Go, JavaScript, R; of Windows, and of glibc with the bits of
  // a NaN.
  constexpr std::array<std::string_view, 10> kWords = {
      "nan",     "inf",     "infinity", "nan(ind)", "nan(snan)",
      "1.#qnan", "1.#snan", "1.#ind",   "1.#inf",   "\xe2\x88\x9e"};
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::string word = lower_case(std::string(text));
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end() ||
         (word.starts_with("nan(0x") && word.ends_with(')'));
}

std::optional<nlohmann::json> json_line(std::string_view line) {
  const std::string text(line);
  if (text.find('{') == std::string::npos || nested_deeper(text)) return std::nullopt;
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
