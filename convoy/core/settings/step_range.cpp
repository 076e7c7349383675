// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/step_range.h"

#include <fmt/format.h>

#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"

namespace convoy::settings {
namespace {

// Limits for a run, and for one trace: each step has tens of events, and a trace holds at most a
// million.
constexpr int64_t kLastStep = 1'000'000'000'000;
constexpr int64_t kMostSteps = 100'000;

std::optional<int64_t> number_of(std::string_view text) {
  const auto number = text_as<int64_t>(text);
  return number && *number >= 0 && *number <= kLastStep ? number : std::nullopt;
}

struct Reading {
  StepRange range = {};
  std::string problem = {};  // empty = none
};

Reading read(std::string_view text) {
  if (text.empty()) return {};
  const size_t colon = text.find(':');
  const bool is_count = colon == std::string_view::npos;
  const std::optional<int64_t> first = number_of(text.substr(0, is_count ? text.size() : colon));
  const std::optional<int64_t> last = is_count ? first : number_of(text.substr(colon + 1));
  if (!first || !last)
    return {.problem = fmt::format(
                "wanted a first and a last step, or a number of steps, found \"{}\"", text)};
  if (!is_count && *first == 0)
    return {.problem = fmt::format("steps are numbered from 1, found \"{}\"", text)};
  if (!is_count && *last < *first)
    return {.problem = fmt::format("the last step comes before the first, found \"{}\"", text)};
  const int64_t num_steps = is_count ? *first : *last - *first + 1;
  if (num_steps > kMostSteps)
    return {.problem = fmt::format("at most {} steps are traced, found {}", kMostSteps, num_steps)};
  return {.range = {.first = is_count ? 0 : *first, .num_steps = num_steps}};
}

}  // namespace

std::optional<std::string> step_range_problem(std::string_view text) {
  const Reading reading = read(text);
  return reading.problem.empty() ? std::nullopt : std::optional(reading.problem);
}

StepRange parse_step_range(std::string_view text) {
  const Reading reading = read(text);
  if (!reading.problem.empty()) throw ConfigError(reading.problem, {.hint = "such as 10:15"});
  return reading.range;
}

}  // namespace convoy::settings
