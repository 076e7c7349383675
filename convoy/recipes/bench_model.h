// SPDX-License-Identifier: Apache-2.0
//
// The model that benchmarks run: a geometry's name, random weights.
#pragma once

#include <memory>

#include "convoy/nn/causal_lm.h"
#include "convoy/settings/command_flags.h"

namespace convoy::recipes {

// Sets the compute threads and the seed, then makes the model; the same weights each time. Throws ConfigError.
std::unique_ptr<nn::CausalLm> bench_model(const settings::BenchFlags& flags);

}  // namespace convoy::recipes
