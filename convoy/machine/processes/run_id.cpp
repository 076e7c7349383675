// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/run_id.h"

#include <fmt/format.h>

#include <random>

namespace convoy::processes {

std::string new_run_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace convoy::processes
