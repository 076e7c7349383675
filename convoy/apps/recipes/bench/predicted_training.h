// SPDX-License-Identifier: Apache-2.0
//
// A step of `convoy bench train` (bench_training.h) on the counting device or on a real device.
#pragma once

#include "convoy/apps/recipes/bench/predicted_step.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::recipes {

// Both throw ConfigError when the model has too few positions for the rows.
CountedStep count_training(const architecture::DecoderSpec& spec,
                           const settings::BenchPredictFlags& flags);
MeasuredStep measure_training(const architecture::DecoderSpec& spec,
                              const settings::BenchPredictFlags& flags, at::Device device);

}  // namespace convoy::recipes
