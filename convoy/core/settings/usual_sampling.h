// SPDX-License-Identifier: Apache-2.0
//
// How texts are drawn where neither the user nor the model's generation_config.json says: one set
// of values for every command. Little heat: small models stray at 1, and repeat themselves at 0.
#pragma once

#include <cstdint>

namespace convoy::settings {

inline constexpr double kUsualTemperature = 0.2;
inline constexpr double kUsualTopP = 0.9;
// At most the model's positions. Long enough for an answer with its thoughts.
inline constexpr int64_t kUsualMaxNewTokens = 4096;

}  // namespace convoy::settings
