// SPDX-License-Identifier: Apache-2.0
//
// How long a sweep waits for its store's server, and what it says meanwhile.
#pragma once

#include <chrono>
#include <string>

namespace convoy::sweep {

// A server that is gone for longer ends a sweep; what was finished is kept, and the same command goes on.
constexpr std::chrono::minutes kServerLimit{10};

// "waiting for it, 10 min at most, 9 min 30 s more".
std::string server_wait_text(std::chrono::milliseconds left);

}  // namespace convoy::sweep
