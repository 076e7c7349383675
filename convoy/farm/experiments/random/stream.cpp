// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/random/stream.h"

#include "convoy/core/base/error.h"

namespace convoy::experiments {
namespace {

uint32_t word_of(int64_t seed, const char* name) {
  if (seed < 0 || seed > int64_t{0xFFFFFFFF})
    throw ConfigError(fmt::format("wanted a {} from 0 to 4294967295, found {}", name, seed),
                      {.hint = "give a number in that range"});
  return static_cast<uint32_t>(seed);
}

}  // namespace

PhiloxKey stream_key(int64_t sweep_seed, int64_t experiment_seed) {
  return {word_of(sweep_seed, "sweep seed"), word_of(experiment_seed, "seed")};
}

}  // namespace convoy::experiments
