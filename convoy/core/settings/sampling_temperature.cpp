// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/sampling_temperature.h"

#include "convoy/core/base/error.h"

namespace convoy::settings {

double temperature_of(const SamplingFlags& sampling) {
  constexpr double kUsualTemperature = 0.2;
  if (!sampling.greedy) return sampling.temperature.value.value_or(kUsualTemperature);
  if (sampling.temperature.value.value_or(0) > 0)
    throw ConfigError("--greedy and a --temperature above 0 exclude each other",
                      {.key = "--temperature", .hint = "leave one of them out"});
  return 0.0;
}

}  // namespace convoy::settings
