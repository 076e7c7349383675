// SPDX-License-Identifier: Apache-2.0
//
// How the texts of a model are drawn: by what the caller gives (flags, configuration, request),
// else by the model's generation_config.json, else by usual_sampling(). Decided here alone.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/core/settings/command_flags.h"

namespace convoy::settings {

// The sampling that a model's generation_config.json says; `auto` where it says nothing.
struct ModelSampling {
  SamplingValues values = {};
  std::string file = {};                 // empty: the model has none
  std::vector<std::string> unused = {};  // keys that change texts in transformers, and not here
};

// If a file draws (`do_sample: true`, or one of temperature, top_p, top_k, min_p), missing values
// of these four keys mean 1, 1, 0 and 0, as in vLLM. `do_sample: false` is greedy, as in
// transformers. Throws DataError naming file and key.
ModelSampling read_model_sampling(const nlohmann::ordered_json& generation_config,
                                  const std::string& file);

// The default values of all commands, used when neither the caller nor the model gives a value.
SamplingValues usual_sampling();

// The sources of lower priority than the caller.
struct SamplingSources {
  ModelSampling model = {};
  SamplingValues usual = usual_sampling();  // no value is `auto`
};

// The sources for values that requests leave open. `given`: the flags of the server, which override
// the model's file.
SamplingSources sources_of_requests(const SamplingValues& given, SamplingSources sources);

// `given` with a number in place of every `auto`, and with temperature 0 if it asks for greedy
// texts. Throws ConfigError for a contradiction.
SamplingFlags settle_sampling(SamplingFlags given, const SamplingSources& sources);

// "sampling: temperature 0.7, top_p 0.8 by DIR/generation_config.json; max_new_tokens 64 as given".
std::string sampling_line(const SamplingFlags& given, const SamplingSources& sources);

// The same for servers that give the texts: every value is sent to them, so none of their own
// defaults counts.
std::string served_sampling_line(const SamplingFlags& given, const SamplingSources& sources);

}  // namespace convoy::settings
