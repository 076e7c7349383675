// SPDX-License-Identifier: Apache-2.0
//
// The log-probabilities that a reference gives to the rows of a training: computed before the first
// step, each row once, by all ranks, and kept beside the token cache.
#pragma once

#include <optional>
#include <string>

#include "convoy/apps/recipes/training/language_start.h"
#include "convoy/train/loop/preference_objective.h"

namespace convoy::recipes {

// Collective. Call it while the model still has its loaded values, not those values that a
// checkpoint holds: before a strategy takes the values or, in a run without a checkpoint, before
// the first step. A dry run only checks the reference's tokenizer. Returns nothing when the run was
// stopped meanwhile; scores computed so far are kept. Throws ConfigError for a reference model with
// another tokenizer.
std::optional<train::ReferenceScores> reference_scores(const TrainingRun& run,
                                                       const LanguageInput& input,
                                                       const SettledBatch& batch,
                                                       comm::Group& group);

// `reference`: the value of `key`. If it names another model, reads only the
// tokenizer of that model. Throws ConfigError when that tokenizer differs from `own`, the tokenizer
// of `model`. `eos_token`: the EOS that `own` was loaded with; empty = its folder's.
void require_tokenizer_of(const std::string& reference, const text::Tokenizer& own,
                          const std::string& eos_token, const std::string& model,
                          const std::string& key = "preference.reference");

}  // namespace convoy::recipes
