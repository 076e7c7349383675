// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/running_tasks.h"

#include <fstream>
#include <iterator>
#include <sstream>

#include "convoy/core/base/usable_cpus.h"

namespace convoy {

bool counts_other_tasks(const std::string& loadavg, int cpus) {
  std::istringstream fields(loadavg);
  std::string minutes[3];
  int running = 0;
  char slash = 0;
  // "1.84 0.97 0.55 3/412 29150": three averages, running/all tasks, number of the newest task.
  if (!(fields >> minutes[0] >> minutes[1] >> minutes[2] >> running >> slash) || slash != '/')
    return false;
  const int others = running - 1;
  return others > 0 && 2 * others >= cpus;
}

bool host_runs_other_tasks() {
  std::ifstream file("/proc/loadavg");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return counts_other_tasks(text, static_cast<int>(allowed_cpus().size()));
}

}  // namespace convoy
