// SPDX-License-Identifier: Apache-2.0
//
// Finds the process that listens on a TCP port of this host, as far as /proc shows it to this user.
#pragma once

#include <filesystem>
#include <string>

namespace convoy::processes {

// "process 4711 (python3)"; empty when no process listens, or when the process belongs to another
// user.
std::string port_holder(int port, const std::filesystem::path& proc = "/proc");

}  // namespace convoy::processes
