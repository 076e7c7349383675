// SPDX-License-Identifier: Apache-2.0
//
// How texts are drawn when neither the user nor the model's generation_config.json gives values:
// one set of values for all commands. The temperature is low, because small models lose the topic
// at 1, but not 0, because they then repeat themselves.
#pragma once

#include <cstdint>

namespace convoy::settings {

inline constexpr double kUsualTemperature = 0.2;
inline constexpr double kUsualTopP = 0.9;
// Long enough for an answer with its reasoning. The model's positions limit it further.
inline constexpr int64_t kUsualMaxNewTokens = 4096;

}  // namespace convoy::settings
