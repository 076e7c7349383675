// SPDX-License-Identifier: Apache-2.0
//
// Long rows cut into windows, so that every token of a long text is learnt.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace convoy::data {

// `mask` begins with 0. Both are valid during the call alone.
using TakeWindow = std::function<void(std::span<const int32_t> ids, std::span<const uint8_t> mask)>;

// Windows of at most `max_tokens`, which is at least 2, in order. A window begins with the last
// token of the one before: what follows that token is learnt there, so each supervised token is a
// target exactly once. Windows without a supervised token are left out. A row that fits is one
// window.
void cut_windows(std::span<const int32_t> ids, std::span<const uint8_t> supervised,
                 int64_t max_tokens, const TakeWindow& take);

}  // namespace convoy::data
