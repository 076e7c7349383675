// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/job_end.h"

#include "convoy/apps/front/standard_streams.h"
#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/error_readers.h"
#include "convoy/machine/processes/error_file.h"

namespace convoy::apps {
namespace {

// Passes the error to the outer launcher, if there is one.
void hand_on_error(const Context& context, const launch::LaunchReport& report) {
  const std::string path = environment_text("TORCHELASTIC_ERROR_FILE");
  if (path.empty() || report.root_cause < 0) return;
  const launch::RankEnd& cause = report.ends[static_cast<size_t>(report.root_cause)];
  if (cause.error_text.empty()) return;
  if (!processes::hand_on_error_file(path, cause.error_text, cause.exit_code))
    context.log().warning(fmt::format("the error could not be written to {}", path));
}

// The first rank that saved its work and stopped because a person requested it.
const launch::RankEnd* stopped_rank(const launch::LaunchReport& report) {
  const launch::RankEnd* first = nullptr;
  if (report.failed() || report.exit_code != static_cast<int>(ExitCode::Stopped)) return first;
  for (const launch::RankEnd& end : report.ends)
    if (!end.sentence.empty() && (first == nullptr || end.rank < first->rank)) first = &end;
  return first;
}

}  // namespace

int say_how_it_ended(const Context& context, const launch::LaunchReport& report) {
  hand_on_error(context, report);
  const ErrorReaders readers = error_readers(context.common.json);
  std::string text;
  if (report.failed()) {
    if (readers.people) text += launch::failure_text(report);
    if (readers.programs) text += launch::failure_json(report) + "\n";
  }
  if (const launch::RankEnd* const stopped = stopped_rank(report)) {
    if (readers.people) text += fmt::format("convoy: {}\n", stopped->sentence);
    if (readers.programs) text += stopped->json_line + "\n";
  }
  write_to_stderr(text);
  if (!report.failed() && report.stop_signal != 0 && report.exit_code > 128)
    write_to_stderr(fmt::format("convoy: stopped on request ({})\n",
                                processes::signal_name(report.stop_signal)));
  return report.exit_code;
}

}  // namespace convoy::apps
