// SPDX-License-Identifier: Apache-2.0
//
// How long work on the tensors of a model reports its progress.
#pragma once

#include <cstdint>
#include <functional>

namespace convoy::models {

// Hears of each piece of work that is done.
using Advance = std::function<void(int64_t done, int64_t total)>;

}  // namespace convoy::models
