// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/sweep/sweep_end.h"

#include <fmt/format.h>

#include "convoy/core/base/error.h"
#include "convoy/farm/sweep/command/program_run.h"

namespace convoy::apps {
namespace {

// The command is ended after this time, which is longer than a mail server takes to refuse a mail.
constexpr double kMostSeconds = 600;

void run_on_end(const Context& context, const std::string& name, const std::string& command,
                int code, const std::string& text) {
  if (command.empty()) return;
  try {
    // The command's stdout goes to stderr, because its output is for people too.
    const sweep::ProgramEnd end = sweep::run_program({"sh", "-c", "exec 1>&2\n" + command},
                                                     {{"CONVOY_SWEEP_NAME", name},
                                                      {"CONVOY_SWEEP_CODE", std::to_string(code)},
                                                      {"CONVOY_SWEEP_END", text}},
                                                     kMostSeconds);
    if (end.timed_out)
      context.log().warning(
          fmt::format("--on-end: the command was ended after {} s", kMostSeconds));
    else if (end.exit_code != 0 || end.signal != 0)
      context.log().warning(fmt::format("--on-end: the command ended with {}",
                                        end.signal != 0 ? 128 + end.signal : end.exit_code));
  } catch (const Error& error) {
    context.log().warning(fmt::format("--on-end: {}", error.sentence()));
  }
}

}  // namespace

int run_to_end(const Context& context, const std::string& name, const std::string& command,
               const std::function<SweepEnd()>& work) {
  try {
    const SweepEnd end = work();
    if (end.ran) run_on_end(context, name, command, end.code, end.text);
    return end.code;
  } catch (const Error& error) {
    run_on_end(context, name, command, static_cast<int>(error.code()), error.sentence());
    throw;
  }
}

}  // namespace convoy::apps
