// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/job_end.h"

#include <unistd.h>

#include "convoy/apps/front/standard_streams.h"

namespace convoy::apps {

int say_how_it_ended(const Context& context, const launch::LaunchReport& report) {
  if (report.failed()) {
    std::string text = "convoy: " + launch::failure_text(report);
    if (context.common.json || ::isatty(STDERR_FILENO) == 0)
      text += launch::failure_json(report) + "\n";
    write_to_stderr(text);
  }
  if (!report.failed() && report.stop_signal != 0 && report.exit_code > 128)
    write_to_stderr(
        fmt::format("convoy: stopped on request ({})\n", launch::signal_name(report.stop_signal)));
  return report.exit_code;
}

}  // namespace convoy::apps
