// SPDX-License-Identifier: Apache-2.0
#include "convoy/settings/step_range.h"

#include <fmt/format.h>

#include <charconv>

#include "convoy/base/error.h"

namespace convoy::settings {
namespace {

constexpr int64_t kMostSteps = 1'000'000'000;

std::optional<int64_t> number_of(std::string_view text) {
  int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (number < 0 || number > kMostSteps) return std::nullopt;
  return number;
}

std::optional<StepRange> read(std::string_view text) {
  if (text.empty()) return StepRange();
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    const std::optional<int64_t> count = number_of(text);
    if (!count) return std::nullopt;
    return StepRange{.first = 0, .num_steps = *count};
  }
  const std::optional<int64_t> first = number_of(text.substr(0, colon));
  const std::optional<int64_t> last = number_of(text.substr(colon + 1));
  if (!first || !last || *first < 1 || *last < *first) return std::nullopt;
  return StepRange{.first = *first, .num_steps = *last - *first + 1};
}

}  // namespace

std::optional<std::string> step_range_problem(std::string_view text) {
  if (read(text)) return std::nullopt;
  return fmt::format("wanted two steps like 10:15, or a number of steps, found \"{}\"", text);
}

StepRange parse_step_range(std::string_view text) {
  const std::optional<StepRange> range = read(text);
  if (!range) throw ConfigError(*step_range_problem(text), {.hint = "10:15"});
  return *range;
}

}  // namespace convoy::settings
