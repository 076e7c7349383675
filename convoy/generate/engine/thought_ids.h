// SPDX-License-Identifier: Apache-2.0
//
// The tags around the thoughts of models that think before they answer.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/data/text/tokenizer.h"
#include "convoy/generate/engine/request.h"

namespace convoy::generate {

// For a chat prompt: the tags <think> and </think>, if each is one token; none when the prompt has
// closed the thoughts itself, as templates do that are told not to think.
ThoughtIds thought_ids(const std::vector<int32_t>& prompt, const text::Tokenizer& tokenizer);

}  // namespace convoy::generate
