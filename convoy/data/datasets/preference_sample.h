// SPDX-License-Identifier: Apache-2.0
//
// A preference row as a sample of two completions: `chosen` and `rejected`, texts or conversations,
// with the prompt in a column of its own or at the beginning of both (TRL's explicit and implicit
// prompts).
#pragma once

#include "convoy/data/datasets/chat_fields.h"
#include "convoy/data/datasets/encode_sample.h"

namespace convoy::data {

// Throws DataError: for sides of unlike types, for two that are equal, and for conversations with
// turns of others behind the prompt.
Sample preference_sample(RowFields& fields);

// The chosen and the rejected one, each as a sample with one completion.
std::vector<Sample> sides_of_pair(const Sample& pair);

// The bytes of the prompt that both texts begin with, without a blank at its end.
size_t common_prompt(std::string_view chosen, std::string_view rejected);

}  // namespace convoy::data
