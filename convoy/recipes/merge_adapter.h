// SPDX-License-Identifier: Apache-2.0
//
// `convoy merge`: LoRA folded into full weights, as a model folder.
#pragma once

#include "convoy/base/log.h"
#include "convoy/settings/command_flags.h"

namespace convoy::recipes {

// The sum is computed in fp32 and rounded once to the stored type. Also writes convoy_merge.json (base_model, dtype,
// merged_from_adapters). Throws convoy::Error.
void merge_adapter(const settings::ModelFlags& model, const settings::MergeFlags& flags,
                   const Log& log);

}  // namespace convoy::recipes
