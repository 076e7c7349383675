// SPDX-License-Identifier: Apache-2.0
//
// The engine's own step, of decoding or of reading prompts, on the counting device or on a real
// device.
#pragma once

#include "convoy/apps/recipes/bench/predicted_step.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::recipes {

// Both throw ConfigError when the model has too few positions for the rows.
CountedStep count_generation(const architecture::DecoderSpec& spec,
                             const settings::BenchPredictFlags& flags);
MeasuredStep measure_generation(const architecture::DecoderSpec& spec,
                                const settings::BenchPredictFlags& flags, at::Device device);

}  // namespace convoy::recipes
