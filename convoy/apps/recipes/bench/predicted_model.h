// SPDX-License-Identifier: Apache-2.0
//
// The model of a step that is predicted: the sizes of a config.json, and no weights.
#pragma once

#include <memory>
#include <optional>

#include "convoy/core/settings/command_flags.h"
#include "convoy/model/architecture/decoder_spec.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"
#include "convoy/model/nn/causal_lm.h"

namespace convoy::recipes {

// The sizes that flags.model or flags.config names. Throws DataError.
architecture::DecoderSpec spec_of(const settings::BenchPredictFlags& flags);

// Values of the weights. None: uninitialised memory, for the counting device.
enum class Values { Random, None };

// Makes a model without trainable parameters. `format`: the quantisation of the blocks' linear
// layers.
std::unique_ptr<nn::CausalLm> model_of_sizes(
    const architecture::DecoderSpec& spec, const at::TensorOptions& options, Values values,
    const std::optional<kernels::BitsandbytesFormat>& format);

}  // namespace convoy::recipes
