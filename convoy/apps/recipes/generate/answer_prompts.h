// SPDX-License-Identifier: Apache-2.0
//
// Answers many prompts with the generation engine; each rank answers its share.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/rank_share.h"
#include "convoy/core/base/log.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/generate/engine/engine.h"

namespace convoy::recipes {

struct AskedPrompt {
  std::vector<int32_t> ids;
  bool is_chat = false;  // rendered by the chat template: the end of a turn ends the answer too
};

// Sample `sample` of prompt `prompt`.
struct Answer {
  int64_t prompt = 0;
  int64_t sample = 0;
  generate::Completion completion;
};

struct AnswerOptions {
  settings::SamplingFlags sampling = {};  // settled
  settings::EngineFlags engine = {};
  std::optional<text::GrammarSource> form = {};  // the form of every answer
  telemetry::ProgressOptions progress = {};
  // True for an answer that already exists and is not generated again.
  std::function<bool(int64_t prompt, int64_t sample)> is_done = {};
  std::function<bool()> stop_wanted = {};  // asked after every step
};

// Calls `take` with each answer to this rank's share of `prompts` as it ends; all ranks pass the
// same prompts. The leading rank shows the total progress. Collective. Throws DataError,
// ConfigError, NumericError; StopRequest, with the number of finished answers, on a stop request.
void answer_prompts(RankShare& share, const LoadedModel& loaded,
                    const std::vector<AskedPrompt>& prompts, const AnswerOptions& options,
                    const Log& log, const std::function<void(const Answer&)>& take);

// For the ids that an engine over this model may draw.
text::GrammarCompiler grammar_compiler(const LoadedModel& loaded);

struct EngineSurroundings {
  int64_t longest_row_tokens = 0;  // prompt and answer together; 0 = the model's positions
  int engines_on_host = 1;         // engines that share the memory of the CPU
  // True beside a training, which keeps its memory on the device: the engine takes half of the
  // rest.
  bool is_beside_training = false;
};

// Tokens of the longest prompt and its answer. `sampling`: settled.
int64_t longest_row(const std::vector<AskedPrompt>& prompts,
                    const settings::SamplingFlags& sampling);

// The most rows of `row_tokens` tokens that an engine with these flags computes together.
sizing::GenerationRows rows_together(const settings::EngineFlags& flags, at::Device device,
                                     int64_t row_tokens);

// Settles the values that the user has left open, depending on the device
// (scheduler/engine_defaults.h). By default an engine takes a whole GPU. Throws ConfigError when
// another engine on this host has that GPU and --kv-blocks does not set the memory of this engine.
generate::EngineConfig engine_config(const settings::EngineFlags& flags, const LoadedModel& model,
                                     const EngineSurroundings& surroundings, const Log& log);

// The request for a sample of a prompt, without its ids. `sampling`: settled.
generate::Request answer_request(const settings::SamplingFlags& sampling, int64_t prompt,
                                 int64_t sample);

}  // namespace convoy::recipes
