// SPDX-License-Identifier: Apache-2.0
//
// A thread that blocks all signals: the program's own threads handle them.
#pragma once

#include <functional>
#include <thread>

namespace convoy {

// Throws std::system_error when no thread can be created.
std::thread quiet_thread(std::function<void()> body);

}  // namespace convoy
