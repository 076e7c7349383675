// SPDX-License-Identifier: Apache-2.0
//
// Signals that request a worker to save its state and exit.
#pragma once

#include <atomic>

namespace convoy::apps {

// From now on SIGTERM, SIGUSR1 and SIGINT make the flag true; a second one from the same sender
// ends the process at once.
const std::atomic<bool>& handle_stop_signals();

}  // namespace convoy::apps
