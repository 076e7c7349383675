// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/visible_devices.h"

#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"

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
  const int number = text_as<int>(wanted).value_or(0);
  if (number < 1)
    throw ConfigError(
        fmt::format("--ranks: wanted auto, gpu, cpu or a number from 1 on, found `{}`", wanted),
        {.hint = "such as --ranks 2"});
  return number;
}

}  // namespace convoy::launch
