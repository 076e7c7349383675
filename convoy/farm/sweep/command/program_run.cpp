// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/program_run.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include "convoy/core/base/seconds_since.h"
#include "convoy/machine/processes/run_child.h"

namespace convoy::sweep {
namespace {

constexpr size_t kLongestLine = 16 << 20;

using TakeLine = std::function<bool(const OutputLine& line)>;

// Cuts the output of a program into lines.
class LineCutter {
 public:
  explicit LineCutter(TakeLine take) : take_(std::move(take)) {}

  // Returns false once a line was not wanted; then no more lines are taken.
  bool take(std::string_view text) {
    output_ += text;
    size_t begin = 0;
    for (size_t stop = output_.find_first_of("\r\n", scanned_); stop != std::string::npos;
         stop = output_.find_first_of("\r\n", begin)) {
      give({.text = std::string_view(output_).substr(begin, stop - begin)});
      begin = stop + 1;
    }
    output_.erase(0, begin);
    if (output_.size() > kLongestLine) {
      give({.text = output_, .too_long = true});
      within_long_ = true;
      output_.clear();
    }
    scanned_ = output_.size();
    return wanted_;
  }
  void end() { give({.text = output_, .ended = false}); }

 private:
  void give(const OutputLine& line) {
    // The rest of a line that was too long is skipped up to its end.
    if (std::exchange(within_long_, false) || line.text.empty()) return;
    wanted_ = wanted_ && (!take_ || take_(line));
  }

  TakeLine take_;
  std::string output_;  // text after the last line
  size_t scanned_ = 0;  // bytes of output_ that hold no end of a line
  bool within_long_ = false;
  bool wanted_ = true;
};

}  // namespace

void pass_errors_on(std::string_view text, std::string& tail) {
  tail += text;
  if (tail.size() > kProgramTailBytes) tail.erase(0, tail.size() - kProgramTailBytes);
  while (!text.empty()) {
    const ssize_t sent = ::write(STDERR_FILENO, text.data(), text.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    text.remove_prefix(static_cast<size_t>(sent));
  }
}

ProgramEnd run_program(const std::vector<std::string>& program,
                       const std::map<std::string, std::string>& environment,
                       double timeout_seconds, const TakeLine& take) {
  const auto begin = std::chrono::steady_clock::now();
  processes::ChildProcess process =
      processes::start_child({.program = program, .environment = environment});
  ProgramEnd end;
  LineCutter lines(take);
  end.timed_out = processes::listen_to(
      process, processes::Seconds(timeout_seconds),
      [&](std::string_view text) {
        if (!lines.take(text) && !std::exchange(end.unwanted, true))
          processes::signal_group(process.pid, SIGKILL);
      },
      [&](std::string_view text) { pass_errors_on(text, end.errors_tail); });
  lines.end();
  end.seconds = seconds_since(begin);
  processes::signal_group(process.pid, SIGKILL);
  const processes::ChildEnd status = processes::wait_for_child(process.pid);
  end.exit_code = status.exit_code;
  end.signal = status.signal;
  return end;
}

}  // namespace convoy::sweep
