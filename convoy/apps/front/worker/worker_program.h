// SPDX-License-Identifier: Apache-2.0
//
// Finds and starts convoy-worker, the program that computes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "convoy/apps/front/command.h"

namespace convoy::apps {

// CONVOY_WORKER, or convoy-worker beside the front. Throws ConfigError when it is missing.
std::filesystem::path worker_program(const Context& context);

// Variables for the worker: the path of LibTorch's libraries, and a limit on how long OpenMP
// threads spin at a barrier, unless the user set one. Without the limit a busy machine decodes
// several times slower. `threads`: CPU threads that the user asks for; 0 = by the worker's rule.
std::map<std::string, std::string> worker_environment(const Context& context, int64_t threads = 0);

// Becomes `convoy-worker COMMAND ARGUMENTS...`. Returns only by throwing ConfigError.
[[noreturn]] void become_worker(const Context& context, const std::string& command,
                                const std::vector<std::string>& arguments, int64_t threads = 0);

}  // namespace convoy::apps
