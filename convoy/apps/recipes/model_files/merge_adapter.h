// SPDX-License-Identifier: Apache-2.0
//
// `convoy models merge`: merges LoRA into full weights, as a model folder.
#pragma once

#include "convoy/core/base/log.h"
#include "convoy/core/settings/command_flags.h"

namespace convoy::recipes {

// Every sum is computed in fp32 and rounded once to the stored type of the weight: with `auto` the
// type in the base's files, weight by weight, else the given type. Also writes convoy_merge.json
// (base_model, dtype, merged_from_adapters, merge_base, quantization, the loss of a few rows before
// and after). For a quantised model the user must choose the base of the sum: the dequantised
// values, or the original weights, which are compared with them. Throws ConfigError, DataError,
// DeviceError, IoError, and NumericError when a sum exceeds the range of the stored type.
void merge_adapter(const settings::ModelSourceFlags& model, const settings::MergeFlags& flags,
                   const settings::RankFlags& ranks, const Log& log);

}  // namespace convoy::recipes
