// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/worker_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "convoy/apps/front/libtorch_folder.h"
#include "convoy/core/base/error.h"

namespace convoy::apps {

std::filesystem::path worker_program(const Context& context) {
  const char* const chosen = std::getenv("CONVOY_WORKER");
  const std::filesystem::path path = chosen != nullptr && *chosen != '\0'
                                         ? std::filesystem::path(chosen)
                                         : context.program.parent_path() / "convoy-worker";
  if (::access(path.c_str(), X_OK) != 0)
    throw ConfigError(
        fmt::format("wanted the program that computes at {}, found none", path.string()),
        {.hint = "install convoy-worker beside convoy, or name it in CONVOY_WORKER"});
  return path;
}

std::map<std::string, std::string> worker_environment(const Context& context, int64_t threads) {
  std::map<std::string, std::string> environment = {
      {"LD_LIBRARY_PATH", libtorch_library_path(context.program)}};
  if (std::getenv("OMP_WAIT_POLICY") == nullptr && std::getenv("GOMP_SPINCOUNT") == nullptr)
    environment["GOMP_SPINCOUNT"] = "10000";
  if (threads > 0) environment["OMP_NUM_THREADS"] = std::to_string(threads);
  return environment;
}

void become_worker(const Context& context, const std::string& command,
                   const std::vector<std::string>& arguments, int64_t threads) {
  std::vector<std::string> words = {worker_program(context).string(), command};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  for (const auto& [name, value] : worker_environment(context, threads))
    ::setenv(name.c_str(), value.c_str(), 1);
  std::fflush(nullptr);
  ::execv(pointers[0], pointers.data());
  throw ConfigError(fmt::format("{} could not be started: {}", words[0], std::strerror(errno)),
                    {.hint = "install convoy-worker beside convoy again"});
}

}  // namespace convoy::apps
