// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/program_watch.h"

#include <unistd.h>

#include <chrono>

#include "convoy/core/base/environment_variable.h"
#include "convoy/machine/processes/process_name.h"

namespace convoy::sweep {
namespace {

constexpr std::chrono::milliseconds kOrphanLimit{2'000};
constexpr std::chrono::milliseconds kLeftoverLimit{2'000};
constexpr const char* kRunnerVariable = "CONVOY_SWEEP_RUNNER";

}  // namespace

ProgramWatch::ProgramWatch()
    : guard_(scratch_.path(), kRunnerVariable + ("=" + processes::process_name(::getpid()))) {
  keeper_.leave_alone(guard_.pid());
}

void ProgramWatch::keep_guard() {
  const pid_t before = guard_.pid();
  if (!guard_.replace_if_gone()) return;
  keeper_.forget(before);
  keeper_.leave_alone(guard_.pid());
}

void ProgramWatch::kill_orphans(const std::vector<pid_t>& workers) {
  for (const pid_t worker : workers) keeper_.leave_alone(worker);
  keeper_.kill_orphans(kOrphanLimit);
}

int ProgramWatch::kill_leftovers() {
  const std::string own = environment_text(kRunnerVariable);
  return processes::kill_marked(
      kRunnerVariable,
      [&](const std::string& runner) { return runner != own && processes::is_gone(runner); },
      kLeftoverLimit);
}

std::map<std::string, std::string> ProgramWatch::environment() {
  return {{kRunnerVariable, processes::process_name(::getpid())}};
}

}  // namespace convoy::sweep
