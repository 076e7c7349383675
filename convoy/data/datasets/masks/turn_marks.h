// SPDX-License-Identifier: Apache-2.0
//
// Locates turns of a conversation. Assistant turns need a constant number of renders: the places of
// all texts are known, and a few turns located by TurnFinder give the text around a content.
// TurnFinder also locates each turn that this text does not surround.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/data/datasets/chats/message_texts.h"
#include "convoy/data/datasets/masks/turn_finder.h"

namespace convoy::data {

// The assistant turns among messages[first_message..], except the turns in `left_out`. `full`: the
// rendered conversation; `texts`: the places of its texts. Throws DataError.
std::vector<TurnSpan> find_assistant_turns(const ChatRenders& renders,
                                           const nlohmann::ordered_json& messages,
                                           const std::string& full, const MessageTexts& texts,
                                           size_t first_message,
                                           const std::vector<size_t>& left_out);

// The turns of another role, located one by one (TurnFinder::find_content). Throws DataError.
std::vector<TurnSpan> find_turns_of(const std::string& role, const ChatRenders& renders,
                                    const nlohmann::ordered_json& messages, const std::string& full,
                                    size_t first_message);

}  // namespace convoy::data
