// SPDX-License-Identifier: Apache-2.0
//
// A text as programs and servers receive it, and texts and settings as errors name them.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/farm/rewards/reward.h"

namespace convoy::rewards {

// {"prompt", "text", "answers", "row", "tokens", "truncated"}.
nlohmann::ordered_json json_of(const JudgedText& text);
// One line. Bytes that are not UTF-8 are replaced by U+FFFD.
std::string line_of(const nlohmann::ordered_json& value);

// "reward `name`: row 12, sample 3: " and `what`. `hint` says what to do.
DataError error_of_text(const settings::RewardSettings& settings, const JudgedText& text,
                        const std::string& what, const std::string& hint);
[[noreturn]] void refuse_text(const settings::RewardSettings& settings, const JudgedText& text,
                              const std::string& what, const std::string& hint);

// Runs `body`, and gives its DataError and ConfigError the name of the reward and the key of the
// setting `key` of it, such as reward[1].schema.
template <class Body>
auto with_place_of(const settings::RewardSettings& settings, const char* key, const Body& body) {
  const auto placed = [&](const Error& error) {
    ErrorLocation place = error.location();
    place.key = fmt::format("{}.{}", settings.key, key);
    return std::pair(fmt::format("{} of reward `{}`: {}", place.key, settings.name, error.what()),
                     place);
  };
  try {
    return body();
  } catch (const DataError& error) {
    const auto [message, place] = placed(error);
    throw DataError(message, place);
  } catch (const ConfigError& error) {
    const auto [message, place] = placed(error);
    throw ConfigError(message, place);
  }
}

// Throws StopRequest once `stop_requested` is true.
void check_stop(const std::function<bool()>& stop_requested);

}  // namespace convoy::rewards
