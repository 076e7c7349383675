// SPDX-License-Identifier: Apache-2.0
//
// A thread that takes no signals: they belong to the threads of the program itself.
#pragma once

#include <functional>
#include <thread>

namespace convoy {

// Throws std::system_error where no thread can be had.
std::thread quiet_thread(std::function<void()> body);

}  // namespace convoy
