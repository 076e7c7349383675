// SPDX-License-Identifier: Apache-2.0
//
// A thread that takes no signals: they belong to the launcher's own thread.
#pragma once

#include <functional>
#include <thread>

namespace convoy::rendezvous {

std::thread quiet_thread(std::function<void()> body);

}  // namespace convoy::rendezvous
