// SPDX-License-Identifier: Apache-2.0
//
// `convoy generate`: answers to a file of prompts, to one prompt, or to a person at the terminal.
#pragma once

#include "convoy/base/log.h"
#include "convoy/generate/generator.h"
#include "convoy/recipes/loaded_model.h"
#include "convoy/recipes/rank_share.h"
#include "convoy/settings/command_flags.h"
#include "convoy/telemetry/progress.h"

namespace convoy::recipes {

// Rows {"index","sample","prompt_tokens","completion","token_ids","finish_reason"} in the order of
// the prompts. One --prompt without --output prints its text alone. `ranks`: as for RankShare; the
// answers are the same for every number of ranks. Throws convoy::Error.
void generate_text(const settings::ModelFlags& model, const settings::GenerateFlags& flags,
                   const settings::SamplingFlags& sampling, const settings::RankFlags& ranks,
                   bool json, const Log& log);

// This rank's answers to its share of `prompts`, which all ranks know. The leading rank shows how
// far all are.
std::vector<generate::Completion> answer(RankShare& share, const LoadedModel& loaded,
                                         const settings::SamplingFlags& sampling,
                                         const std::vector<std::vector<int32_t>>& prompts,
                                         telemetry::ProgressOptions progress, const Log& log);

// Sampling flags and the ids that end a text of this model.
generate::GenerationConfig generation_config(const settings::SamplingFlags& sampling,
                                             const LoadedModel& model);

}  // namespace convoy::recipes
