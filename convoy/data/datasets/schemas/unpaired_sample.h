// SPDX-License-Identifier: Apache-2.0
//
// A row with one answer and a column that calls it a good or a bad one, as a sample: TRL's unpaired
// preferences (`label`), LLaMA-Factory's `kto_tag`.
#pragma once

#include <array>
#include <optional>

#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/data/datasets/schemas/chat_fields.h"

namespace convoy::data {

inline constexpr std::array<const char*, 2> kJudgementColumns = {"label", "kto_tag"};

// The first of them that the row has; null: none.
const char* judgement_column(const nlohmann::ordered_json& row);
// A JSON boolean, or one as CSV writes it. None for anything else, which may be a class.
std::optional<bool> judgement_of(const nlohmann::ordered_json& value);
// The same of a column that is known to judge, also of 1 and 0. Throws DataError for another value.
bool judgement(const RowFields& fields, const char* column);

// `answer`, made from `fields`, as a prompt and its completion: of a conversation, the turns behind
// the last one of the user. Throws DataError where nothing is the prompt.
Sample unpaired_sample(const RowFields& fields, Sample answer);

}  // namespace convoy::data
