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

#include "convoy/core/base/trimmed.h"
#include "convoy/machine/processes/rank_process.h"

namespace convoy::sweep {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kOutputBytes = 1 << 20;

using LineCheck = std::function<bool(const std::string& line)>;

// Moves whole lines that begin with '{' to `end` and drops the others but the last: what a program
// prints after its answer, however much, does not push it out. False once `wanted` was false for
// one of them.
bool keep_lines(std::string& output, ProgramEnd& end, const LineCheck& wanted) {
  constexpr size_t kLongestLast = 200;
  std::string& kept = end.object_lines;
  bool all_wanted = true;
  size_t begin = 0;
  for (size_t stop = output.find('\n'); stop != std::string::npos;
       stop = output.find('\n', begin)) {
    const std::string_view line = std::string_view(output).substr(begin, stop + 1 - begin);
    const std::string_view words = trimmed(line, " \t\r\n");
    if (!words.empty()) end.last_line = words.substr(0, kLongestLast);
    if (words.starts_with('{')) {
      kept += line;
      all_wanted = all_wanted && (!wanted || wanted(std::string(line)));
    }
    begin = stop + 1;
  }
  output.erase(0, begin);
  if (kept.size() > kOutputBytes) kept.erase(0, kept.size() - kOutputBytes);
  return all_wanted;
}

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
                       double timeout_seconds, const LineCheck& wanted) {
  processes::RankStart start;
  start.program = program;
  start.environment = environment;
  sigemptyset(&start.signals);
  const auto begin = Clock::now();
  processes::RankProcess process = processes::start_rank(start);
  ProgramEnd end;
  std::string output;
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
    drain_program(process.output, output, 2 * kOutputBytes, -1);
    if (!keep_lines(output, end, end.unwanted ? LineCheck() : wanted) &&
        !std::exchange(end.unwanted, true))
      processes::signal_group(process.pid, SIGKILL);
    drain_program(process.errors, end.errors_tail, kProgramTailBytes, STDERR_FILENO);
  }
  keep_lines(output += '\n', end, {});  // a last line without its end
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
