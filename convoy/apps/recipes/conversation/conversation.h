// SPDX-License-Identifier: Apache-2.0
//
// A conversation of a person with a model: lines in, answers out as they are generated, and the
// commands that /help lists. On a terminal Ctrl-C discards the typed line, or stops the answer.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/core/settings/sampling_choice.h"
#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/generate/engine/engine.h"

namespace convoy::recipes {

struct ConversationOptions {
  std::string model;  // the model's name for people
  std::string system_prompt;
  nlohmann::ordered_json template_kwargs;
  settings::SamplingFlags sampling = {};  // given by the user
  settings::SamplingSources sources = {};
  std::vector<int32_t> turn_end_ids = {};  // ids that end answers, from the chat template
  int64_t adapter = 0;          // the engine's number of an adapter that can be switched off
  std::string no_base_because;  // if `adapter` is 0: the reason, for people
};

// Runs until the end of input or /exit. Answers go to stdout, everything else to stderr. Each turn
// processes only the new part of the conversation. Blocks. On a terminal a wrong command or a
// question without room is a warning, else it throws ConfigError, DataError, IoError; NumericError.
void converse(generate::Engine& engine, const data::SampleEncoder& encoder,
              const ConversationOptions& options, const Log& log);

}  // namespace convoy::recipes
