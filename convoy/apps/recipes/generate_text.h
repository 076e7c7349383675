// SPDX-License-Identifier: Apache-2.0
//
// `convoy generate`: answers to a file of prompts, to one prompt, or to a person at the terminal.
#pragma once

#include <functional>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/command_flags.h"

namespace convoy::recipes {

struct GenerateRun {
  settings::ModelFlags model = {};
  settings::GenerateFlags flags = {};
  settings::SamplingFlags sampling = {};
  settings::EngineFlags engine = {};
  settings::RankFlags ranks = {};  // as for RankShare; the answers are the same for every number
  bool json = false;
  std::function<bool()> stop_wanted = {};  // asked between steps, where answers are kept
};

// Whether answers are kept as they end, so that the same command goes on after a stop.
bool keeps_answers(const GenerateRun& run);

// Rows {"index","sample","prompt_tokens","completion","token_ids","finish_reason"} in the order of
// the prompts, with "logprobs" when they are asked for. One --prompt without --output prints its
// text alone. A run that was killed goes on from the answers that it had finished for its --output
// (AnswerJournal). Throws convoy::Error; StopRequest when told to stop.
void generate_text(const GenerateRun& run, const Log& log);

}  // namespace convoy::recipes
