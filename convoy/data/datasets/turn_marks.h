// SPDX-License-Identifier: Apache-2.0
//
// Locates turns of a conversation; all of the assistant with a number of renders that does not grow
// with the turns: one render with marks around the contents of the messages tells where those lie,
// and a few turns located by TurnFinder tell what stands around a content. A turn that does not
// look like them is located by TurnFinder too.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/data/datasets/turn_finder.h"

namespace convoy::data {

// The assistant turns among messages[first_message..] of `full`, the rendered conversation, but
// those of the messages `left_out`. Throws DataError.
std::vector<TurnSpan> find_assistant_turns(const ChatRenders& renders,
                                           const nlohmann::ordered_json& messages,
                                           const std::string& full, size_t first_message,
                                           const std::vector<size_t>& left_out);

// Those of another role, one by one (TurnFinder::find_content). Throws DataError.
std::vector<TurnSpan> find_turns_of(const std::string& role, const ChatRenders& renders,
                                    const nlohmann::ordered_json& messages, const std::string& full,
                                    size_t first_message);

}  // namespace convoy::data
