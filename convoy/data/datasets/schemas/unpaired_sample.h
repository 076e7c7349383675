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

// The first column of the row that judges its answer; nullptr when there is none.
const char* judgement_column(const nlohmann::ordered_json& row);
// The value of a JSON boolean, or of one as CSV writes it. Empty for anything else, which may be a
// class label.
std::optional<bool> judgement_of(const nlohmann::ordered_json& value);
// Like judgement_of(), and 1 and 0 as a number or a text.
std::optional<bool> judgement_or_number_of(const nlohmann::ordered_json& value);
// Whether the row's answer is a good one, by the columns of a row that has at least one of them; 1
// and 0 are accepted too. Throws DataError for any other value, and for columns that contradict
// each other.
bool judgement(const RowFields& fields);

// Splits `answer`, made from `fields`, into a prompt and its completion. The completion of a
// conversation is the turns behind the last user turn. Throws DataError when no part is the prompt.
Sample unpaired_sample(const RowFields& fields, Sample answer);

}  // namespace convoy::data
