// SPDX-License-Identifier: Apache-2.0
//
// `convoy generate`: answers a file of prompts, one prompt, or a person at the terminal.
#pragma once

#include <functional>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/worker_calls.h"

namespace convoy::recipes {

struct GenerateRun : settings::GenerateCall {
  settings::RankFlags ranks = {};  // passed to RankShare; their number changes no answer
  bool json = false;
  std::function<bool()> stop_wanted = {};  // asked between steps, where answers are kept
};

// True when finished answers are saved, so that the same command resumes after a stop.
bool keeps_answers(const GenerateRun& run);

// Rows {"index","sample","prompt_tokens","completion","token_ids","finish_reason"} in the order of
// the prompts, with "logprobs" when requested. One --prompt without --output prints only its text.
// A killed run resumes from its finished answers for the same --output (AnswerJournal). Throws
// convoy::Error; StopRequest on a stop request.
void generate_text(const GenerateRun& run, const Log& log);

}  // namespace convoy::recipes
