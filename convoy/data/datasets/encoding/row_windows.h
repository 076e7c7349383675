// SPDX-License-Identifier: Apache-2.0
//
// Cuts long rows into windows, so that every token of a long text is supervised.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace convoy::data {

// `mask` begins with 0. All are valid only during the call.
using TakeWindow = std::function<void(std::span<const int32_t> ids, std::span<const uint8_t> mask,
                                      std::span<const float> weights)>;

// Windows of at most `max_tokens`, which is at least 2, in order. A window begins with the last
// token of the window before, so each supervised token is a target exactly once. Skips windows
// without a supervised token. A row that fits is one window. `weights` may be empty.
void cut_windows(std::span<const int32_t> ids, std::span<const uint8_t> supervised,
                 std::span<const float> weights, int64_t max_tokens, const TakeWindow& take);

}  // namespace convoy::data
