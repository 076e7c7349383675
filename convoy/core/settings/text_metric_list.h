// SPDX-License-Identifier: Apache-2.0
//
// The text metrics by name, from text_metrics.inl. Settings, help, error texts and reports read
// this list. Plain data.
#pragma once

#include <string_view>

namespace convoy::settings {

struct TextMetricFacts {
  std::string_view name;
  std::string_view help;
  double most = 1;             // scores lie between 0 and this
  bool needs_answers = false;  // scored against marked answers in the references
};

inline constexpr TextMetricFacts kTextMetrics[] = {
#define CONVOY_TEXT_METRIC(metric, text, ...) \
  {.name = #metric, .help = text __VA_OPT__(, ) __VA_ARGS__},
#include "convoy/core/settings/text_metrics.inl"
#undef CONVOY_TEXT_METRIC
};

}  // namespace convoy::settings
