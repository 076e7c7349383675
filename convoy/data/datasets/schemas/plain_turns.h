// SPDX-License-Identifier: Apache-2.0
//
// The turns of a row whose texts are in columns: alpaca, triple and loose rows, with the columns
// that data sets of these forms have beside question and answer: system, history, context, choices,
// reasoning.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/data/datasets/schemas/chat_fields.h"

namespace convoy::data {

// Columns that may hold the user's turn beside two sides or ranked answers, if there is no
// `prompt`. The first column that exists counts (LLaMA-Factory's, Intel/orca_dpo_pairs', Stack
// Exchange's). `input` is read only beside `instruction`.
inline constexpr std::array kQuestionColumns = {"instruction", "question", "query"};

// True when the row has a question and an answer; null counts as absent.
bool has_question_and_answer(const nlohmann::ordered_json& row);
// Names of the answer's columns that the row has.
std::vector<std::string> answer_keys(const nlohmann::ordered_json& row);

// The turns from the columns `user` (question) and `assistant` (answer). Throws DataError.
nlohmann::ordered_json plain_turns(RowFields& fields, std::string_view user,
                                   std::string_view assistant);
// Like plain_turns(), but finds the two columns. Throws DataError when several columns could be the
// question or the answer.
nlohmann::ordered_json loose_turns(RowFields& fields);

// The text instruction + "\n" + input, as SFT-Play documents it. The input may be empty or absent.
std::string instruction_text(RowFields& fields);

}  // namespace convoy::data
