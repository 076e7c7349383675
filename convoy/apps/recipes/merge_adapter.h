// SPDX-License-Identifier: Apache-2.0
//
// `convoy models merge`: LoRA folded into full weights, as a model folder.
#pragma once

#include "convoy/core/base/log.h"
#include "convoy/core/settings/command_flags.h"

namespace convoy::recipes {

// Every sum is computed in fp32 and rounded once to the type the weight is stored in: with `auto`
// the type the base's files store that weight in, weight by weight, else the type named. Also
// writes convoy_merge.json (base_model, dtype, merged_from_adapters, merge_base, quantization, the
// loss of a few rows before and after). A quantised model wants to be told what to add to: what its
// codes stand for, or the weights that they were made of, which are compared with them. Throws
// ConfigError, DataError, DeviceError, IoError, and NumericError when a sum is beyond the stored
// type.
void merge_adapter(const settings::ModelSourceFlags& model, const settings::MergeFlags& flags,
                   const settings::RankFlags& ranks, const Log& log);

}  // namespace convoy::recipes
