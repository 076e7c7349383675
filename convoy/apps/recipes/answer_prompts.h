// SPDX-License-Identifier: Apache-2.0
//
// Answers to many prompts through the generation engine, each rank those of its share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/rank_share.h"
#include "convoy/core/base/log.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/generate/engine/engine.h"

namespace convoy::recipes {

// Sample `sample` of prompt `prompt`.
struct Answer {
  int64_t prompt = 0;
  int64_t sample = 0;
  generate::Completion completion;
};

struct AnswerOptions {
  settings::SamplingFlags sampling = {};
  settings::EngineFlags engine = {};
  telemetry::ProgressOptions progress = {};
  // Answers that are there already: they are not made again.
  std::function<bool(int64_t prompt, int64_t sample)> is_done = {};
  std::function<bool()> stop_wanted = {};  // asked after every step
};

// Calls `take` with each answer of this rank to its share of `prompts`, which all ranks know, as it
// ends. The leading rank shows how far all are. Collective. Throws DataError, ConfigError,
// NumericError; StopRequest, saying how many are finished, when it is to stop.
void answer_prompts(RankShare& share, const LoadedModel& loaded,
                    const std::vector<std::vector<int32_t>>& prompts, const AnswerOptions& options,
                    const Log& log, const std::function<void(const Answer&)>& take);

// `longest_row_tokens`: prompt and answer; 0 = not known. `engines_on_host` share the memory of the
// CPU.
generate::EngineConfig engine_config(const settings::EngineFlags& flags, const LoadedModel& model,
                                     int64_t longest_row_tokens, int engines_on_host = 1);

// The request for a sample of a prompt, but for its ids.
generate::Request answer_request(const settings::SamplingFlags& sampling, int64_t prompt,
                                 int64_t sample);

}  // namespace convoy::recipes
