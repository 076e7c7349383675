// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace convoy::comm {

// Waits at most `limit`. True: the collective is done; false: it still runs. Throws what the
// collective threw.
bool done_within(c10d::Work& work, std::chrono::milliseconds limit);

}  // namespace convoy::comm
