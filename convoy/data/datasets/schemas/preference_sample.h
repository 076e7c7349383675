// SPDX-License-Identifier: Apache-2.0
//
// A preference row as a sample of two completions: `chosen` and `rejected`, texts or conversations,
// with the prompt in a column of its own or at the beginning of both (TRL's explicit and implicit
// prompts).
#pragma once

#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/data/datasets/schemas/chat_fields.h"

namespace convoy::data {

// Throws DataError: for sides of unlike types, for two that are equal, and for conversations with
// turns of others behind the prompt.
Sample preference_sample(RowFields& fields);

// The chosen and the rejected one, each as a sample with one completion.
std::vector<Sample> sides_of_pair(const Sample& pair);

// A turn that a model reads and does not write: of the user, the system, the developer.
bool is_of_prompt(const nlohmann::ordered_json& turn);
// Every token behind the prompt is the answer's: another's turn there would be learnt as one.
// Throws DataError for `turns` of the column `key` with some.
void require_turns_of_assistant(const RowFields& fields, const char* key,
                                const nlohmann::ordered_json& turns);

// The bytes of the prompt that both texts begin with, without a blank at its end.
size_t common_prompt(std::string_view chosen, std::string_view rejected);

}  // namespace convoy::data
