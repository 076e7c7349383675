// SPDX-License-Identifier: Apache-2.0
//
// Names of processes that hold entries in a store. A reader of an entry can find out from the name
// whether the process is gone.
#pragma once

#include <sys/types.h>

#include <string>

namespace convoy::processes {

// "HOST.BOOT.NAMESPACE:PID:START": no other process has the name, ever.
std::string process_name(pid_t process);
// True when the process of that name ran on this host and is gone.
bool is_gone(const std::string& process);

}  // namespace convoy::processes
