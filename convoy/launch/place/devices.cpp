// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/devices.h"

#include <charconv>

#include "convoy/core/base/error.h"

namespace convoy::launch {

int rank_count(const std::string& wanted, const CountFacts& facts) {
  if (wanted == "cpu") return facts.usable_cpus;
  if (wanted == "auto") return facts.num_devices > 0 ? facts.num_devices : facts.usable_cpus;
  if (wanted == "gpu") {
    if (facts.num_devices > 0) return facts.num_devices;
    throw ConfigError(
        fmt::format("--ranks gpu: {}",
                    facts.why_none.empty() ? "CUDA_VISIBLE_DEVICES leaves no GPU" : facts.why_none),
        {.hint = "give a number, cpu, or auto"});
  }
  int number = 0;
  const char* const end = wanted.data() + wanted.size();
  const auto [rest, error] = std::from_chars(wanted.data(), end, number);
  CONVOY_CHECK(error == std::errc() && rest == end && number >= 1, ConfigError,
               "--ranks: wanted auto, gpu, cpu or a number from 1 on, found `{}`", wanted);
  return number;
}

}  // namespace convoy::launch
