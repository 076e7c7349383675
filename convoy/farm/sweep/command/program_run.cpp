// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/program_run.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include "convoy/machine/processes/rank_process.h"

namespace convoy::sweep {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kLongestLine = 16 << 20;

using TakeLine = std::function<bool(const OutputLine& line)>;

// Cuts what a program writes into lines.
class LineCutter {
 public:
  explicit LineCutter(TakeLine take) : take_(std::move(take)) {}

  std::string& output() { return output_; }  // append to it, then cut()

  // False once a line was not wanted; then no more are taken.
  bool cut(bool ended) {
    size_t begin = 0;
    for (size_t stop = output_.find_first_of("\r\n", scanned_); stop != std::string::npos;
         stop = output_.find_first_of("\r\n", begin)) {
      give({.text = std::string_view(output_).substr(begin, stop - begin)});
      begin = stop + 1;
    }
    output_.erase(0, begin);
    if (ended) give({.text = output_, .ended = false});
    if (output_.size() > kLongestLine) {
      give({.text = output_, .too_long = true});
      within_long_ = true;
      output_.clear();
    }
    scanned_ = output_.size();
    return wanted_;
  }

 private:
  void give(const OutputLine& line) {
    // The rest of a long line ends with its end.
    if (std::exchange(within_long_, false) || line.text.empty()) return;
    wanted_ = wanted_ && (!take_ || take_(line));
  }

  TakeLine take_;
  std::string output_;  // after the last line
  size_t scanned_ = 0;  // bytes of output_ that hold no end of a line
  bool within_long_ = false;
  bool wanted_ = true;
};

double elapsed_seconds(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

int wait_milliseconds(Clock::time_point begin, double timeout_seconds) {
  constexpr double kLongest = 1.0;
  if (timeout_seconds <= 0) return static_cast<int>(kLongest * 1000);
  const double left = timeout_seconds - elapsed_seconds(begin);
  return static_cast<int>(1000 * std::max(0.0, std::min(kLongest, left))) + 1;
}

}  // namespace

void drain_program(Descriptor& from, std::string& kept, size_t limit, int pass_on) {
  constexpr int kMostReads = 16;
  std::array<char, 65536> buffer;
  for (int turn = 0; from.open() && turn < kMostReads; ++turn) {
    const ssize_t received = ::read(from.get(), buffer.data(), buffer.size());
    if (received < 0 && errno == EINTR) continue;
    if (received < 0 && errno == EAGAIN) return;
    if (received <= 0) {
      from.reset();
      return;
    }
    kept.append(buffer.data(), static_cast<size_t>(received));
    if (kept.size() > limit) kept.erase(0, kept.size() - limit);
    if (pass_on < 0) continue;
    [[maybe_unused]] const ssize_t sent =
        ::write(pass_on, buffer.data(), static_cast<size_t>(received));
  }
}

ProgramEnd run_program(const std::vector<std::string>& program,
                       const std::map<std::string, std::string>& environment,
                       double timeout_seconds, const TakeLine& take) {
  processes::RankStart start;
  start.program = program;
  start.environment = environment;
  sigemptyset(&start.signals);
  const auto begin = Clock::now();
  processes::RankProcess process = processes::start_rank(start);
  ProgramEnd end;
  LineCutter lines(take);
  for (bool exited = false; !exited;) {
    std::array<pollfd, 3> polled = {{{.fd = process.exited.get(), .events = POLLIN, .revents = 0},
                                     {.fd = process.output.get(), .events = POLLIN, .revents = 0},
                                     {.fd = process.errors.get(), .events = POLLIN, .revents = 0}}};
    ::poll(polled.data(), polled.size(), wait_milliseconds(begin, timeout_seconds));
    exited = polled[0].revents != 0;
    if (!exited && timeout_seconds > 0 && elapsed_seconds(begin) >= timeout_seconds &&
        !end.timed_out) {
      end.timed_out = true;
      processes::signal_group(process.pid, SIGKILL);
    }
    drain_program(process.output, lines.output(), std::string::npos, -1);
    if (!lines.cut(false) && !std::exchange(end.unwanted, true))
      processes::signal_group(process.pid, SIGKILL);
    drain_program(process.errors, end.errors_tail, kProgramTailBytes, STDERR_FILENO);
  }
  lines.cut(true);
  end.seconds = elapsed_seconds(begin);
  processes::signal_group(process.pid, SIGKILL);
  int status = 0;
  while (::waitpid(process.pid, &status, 0) < 0 && errno == EINTR) {
  }
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return end;
}

}  // namespace convoy::sweep
