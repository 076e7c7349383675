// SPDX-License-Identifier: Apache-2.0
//
// A preference row as a sample of two completions: `chosen` and `rejected`, texts or conversations,
// with the prompt in a column of its own or at the beginning of both (TRL's explicit and implicit
// prompts).
#pragma once

#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/data/datasets/schemas/chat_fields.h"

namespace convoy::data {

// Converts a preference row. Throws DataError for sides of different types, for equal sides, and
// for conversations in which other turns than the assistant's follow the prompt.
Sample preference_sample(RowFields& fields);

// Splits a pair into two samples with one completion each: first the chosen side, then the rejected
// one.
std::vector<Sample> sides_of_pair(const Sample& pair);

// True for a turn that the model reads but does not write: of the user, the system or the
// developer.
bool is_of_prompt(const nlohmann::ordered_json& turn);
// Throws DataError if `turns`, of the column `key`, has a turn that is not the assistant's. Every
// token behind the prompt is learnt as the answer, so such a turn would be learnt too.
void require_turns_of_assistant(const RowFields& fields, const char* key,
                                const nlohmann::ordered_json& turns);
// Throws DataError if a user's turn of the prompt `turns` has no text: the model would be judged by
// its answer to nothing.
void require_questions(const RowFields& fields, const nlohmann::ordered_json& turns);

// Number of bytes of the prompt that both texts begin with, without a space at its end.
size_t common_prompt(std::string_view chosen, std::string_view rejected);

}  // namespace convoy::data
