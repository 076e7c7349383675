// SPDX-License-Identifier: Apache-2.0
//
// `convoy models quantize`: quantises or dequantises a model folder or a file of tensors.
#pragma once

#include "convoy/core/base/log.h"
#include "convoy/core/settings/quantization_settings.h"

namespace convoy::recipes {

// Throws ConfigError, DataError naming the tensor, IoError.
void quantize_weights(const settings::QuantizeFlags& flags, const Log& log);

}  // namespace convoy::recipes
