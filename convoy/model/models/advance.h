// SPDX-License-Identifier: Apache-2.0
//
// The function by which long work on a model's tensors reports its progress.
#pragma once

#include <cstdint>
#include <functional>

namespace convoy::models {

// Called after each piece of work.
using Advance = std::function<void(int64_t done, int64_t total)>;

}  // namespace convoy::models
