// SPDX-License-Identifier: Apache-2.0
//
// Cuts long rows into windows, so that every token of a long text is supervised.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace convoy::data {

// Receives one window. `mask` begins with 0. All spans are valid only during the call.
using TakeWindow = std::function<void(std::span<const int32_t> ids, std::span<const uint8_t> mask,
                                      std::span<const float> weights)>;

// Cuts a row into windows of at most `max_tokens` (at least 2), in order. A window begins with the
// last token of the window before it, so each supervised token is a target exactly once. Skips
// windows without a supervised token. A row that fits is one window. `weights` may be empty.
void cut_windows(std::span<const int32_t> ids, std::span<const uint8_t> supervised,
                 std::span<const float> weights, int64_t max_tokens, const TakeWindow& take);

}  // namespace convoy::data
