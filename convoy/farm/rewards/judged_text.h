// SPDX-License-Identifier: Apache-2.0
//
// A text as programs and servers receive it, and as errors name it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "convoy/farm/rewards/reward.h"

namespace convoy::rewards {

// {"prompt", "text", "answers", "row", "tokens", "truncated"}.
nlohmann::ordered_json json_of(const JudgedText& text);
// One line. Bytes that are not UTF-8 are replaced by U+FFFD.
std::string line_of(const nlohmann::ordered_json& value);

// Throws DataError: "reward `name`: row 12, sample 3: " and `what`. `hint` says what to do.
[[noreturn]] void refuse_text(const settings::RewardSettings& settings, const JudgedText& text,
                              const std::string& what, const std::string& hint);

// Throws StopRequest once `stop_requested` is true.
void check_stop(const std::function<bool()>& stop_requested);

}  // namespace convoy::rewards
