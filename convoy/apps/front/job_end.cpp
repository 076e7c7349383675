// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/job_end.h"

#include <unistd.h>

#include <cstdio>

namespace convoy::apps {

int say_how_it_ended(const Context& context, const launch::LaunchReport& report) {
  if (report.failed()) {
    fmt::print(stderr, "convoy: {}", launch::failure_text(report));
    if (context.common.json || ::isatty(STDERR_FILENO) == 0)
      fmt::print(stderr, "{}\n", launch::failure_json(report));
  }
  return report.exit_code;
}

}  // namespace convoy::apps
