// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/worker/worker_program.h"

#include <unistd.h>

#include <cstdlib>

#include "convoy/apps/front/worker/libtorch_folder.h"
#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/running_tasks.h"
#include "convoy/machine/processes/child_process.h"

namespace convoy::apps {
namespace {

// Number of spins of an OpenMP thread at a barrier before it sleeps. The spins cover the gaps
// between the matrix products of a step. A thread that waits for a thread without a core wastes all
// of its spins, so the number is lower when other programs run. Measured in docs/benchmarks-log.md,
// "Threads beside other work".
constexpr const char* kSpins = "10000";
constexpr const char* kSpinsBesideOthers = "1000";

}  // namespace

std::filesystem::path worker_program(const Context& context) {
  std::filesystem::path path = environment_text("CONVOY_WORKER");
  if (path.empty()) path = context.program.parent_path() / "convoy-worker";
  if (::access(path.c_str(), X_OK) != 0)
    throw ConfigError(
        fmt::format("wanted the program that computes at {}, found none", path.string()),
        {.hint = "install convoy-worker beside convoy, or name it in CONVOY_WORKER"});
  return path;
}

std::map<std::string, std::string> worker_environment(const Context& context, int64_t threads) {
  std::map<std::string, std::string> environment = {
      {"LD_LIBRARY_PATH", libtorch_library_path(context.program)}};
  if (!environment_variable("OMP_WAIT_POLICY") && !environment_variable("GOMP_SPINCOUNT"))
    environment["GOMP_SPINCOUNT"] = host_runs_other_tasks() ? kSpinsBesideOthers : kSpins;
  if (threads > 0) environment["OMP_NUM_THREADS"] = std::to_string(threads);
  return environment;
}

void become_worker(const Context& context, const std::string& command,
                   const std::vector<std::string>& arguments, int64_t threads) {
  std::vector<std::string> words = {worker_program(context).string(), command};
  words.insert(words.end(), arguments.begin(), arguments.end());
  for (const auto& [name, value] : worker_environment(context, threads))
    ::setenv(name.c_str(), value.c_str(), 1);
  const std::string reason = processes::become_program(words);
  throw ConfigError(fmt::format("{} could not be started: {}", words[0], reason),
                    {.hint = "install convoy-worker beside convoy again"});
}

}  // namespace convoy::apps
