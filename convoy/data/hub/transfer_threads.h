// SPDX-License-Identifier: Apache-2.0
//
// The threads of a fetch or a push: each works on one file after the other.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace convoy::hub {

using FileWork = std::function<void(size_t index)>;

// Blocks. Calls work for every index below `count`, on at most `num_threads` threads. `begin` is
// called on each thread and returns that thread's work. The first error sets `has_failed`, so that
// the other threads can end early; it is thrown when all of them have ended.
void run_on_threads(size_t count, size_t num_threads, std::atomic<bool>& has_failed,
                    const std::function<FileWork()>& begin);

}  // namespace convoy::hub
