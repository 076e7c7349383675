// SPDX-License-Identifier: Apache-2.0
//
// convoy-worker, the program that computes, as the front finds and starts it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "convoy/apps/front/command.h"

namespace convoy::apps {

// CONVOY_WORKER, or convoy-worker beside the front. Throws ConfigError when it is not there.
std::filesystem::path worker_program(const Context& context);

// Variables the worker needs beside ours: where LibTorch's libraries are, and a bound on how long
// OpenMP threads spin at a barrier unless the user set one. Without the bound a busy machine
// decodes several times slower.
std::map<std::string, std::string> worker_environment(const Context& context);

// Becomes `convoy-worker COMMAND ARGUMENTS...`. Returns only by throwing ConfigError.
[[noreturn]] void become_worker(const Context& context, const std::string& command,
                                const std::vector<std::string>& arguments);

}  // namespace convoy::apps
