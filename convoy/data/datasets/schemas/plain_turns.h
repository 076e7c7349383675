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

// The columns of the user's turn beside sides or ranked answers, where it is no `prompt`: the first
// that is there (LLaMA-Factory's, Intel/orca_dpo_pairs', Stack Exchange's). `input` belongs to
// `instruction` alone.
inline constexpr std::array kQuestionColumns = {"instruction", "question", "query"};

// True when the row has a question and an answer; null counts as absent.
bool has_question_and_answer(const nlohmann::ordered_json& row);
// Names of the answer's columns that the row has.
std::vector<std::string> answer_keys(const nlohmann::ordered_json& row);

// `user` and `assistant`: the columns of the question and its answer. Throw DataError.
nlohmann::ordered_json plain_turns(RowFields& fields, std::string_view user,
                                   std::string_view assistant);
// Finds the columns; more than one that could be the question or the answer is an error.
nlohmann::ordered_json loose_turns(RowFields& fields);

// instruction + "\n" + input, as SFT-Play documents it; the input may be empty or absent.
std::string instruction_text(RowFields& fields);

}  // namespace convoy::data
