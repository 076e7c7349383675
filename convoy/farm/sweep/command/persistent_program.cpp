// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/persistent_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>

#include "convoy/core/base/seconds_since.h"
#include "convoy/farm/sweep/command/program_answer.h"
#include "convoy/farm/sweep/command/program_run.h"
#include "convoy/farm/sweep/runner/task_failure.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::sweep {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kLineBytes = 1 << 20;
constexpr double kLongestWaitSeconds = 1;
// Time between checks whether a program reads, since no event tells it.
constexpr double kLookSeconds = 0.02;

// Number of bytes in the pipe that are not yet read; 0 if the system cannot tell.
size_t unread_bytes(int descriptor) {
  int count = 0;
  return ::ioctl(descriptor, FIONREAD, &count) == 0 ? static_cast<size_t>(count) : 0;
}

// Writes as much as fits now. Returns false if the pipe has no reader any more.
bool send_some(int descriptor, std::string& text) {
  while (!text.empty()) {
    const ssize_t sent = ::write(descriptor, text.data(), text.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN;
    text.erase(0, static_cast<size_t>(sent));
  }
  return true;
}

}  // namespace

PersistentLimits PersistentLimits::of_timeout(double cell_seconds) {
  constexpr double kStartSeconds = 600;
  return {.cell_seconds = cell_seconds,
          .start_seconds = cell_seconds > 0 ? std::max(cell_seconds, kStartSeconds) : 0};
}

PersistentProgram::PersistentProgram(std::vector<std::string> program,
                                     std::map<std::string, std::string> environment,
                                     PersistentLimits limits)
    : program_(std::move(program)), environment_(std::move(environment)), limits_(limits) {}

PersistentProgram::~PersistentProgram() { end(); }

void PersistentProgram::start() {
  Pipe input = make_pipe();
  processes::ChildProcess process = processes::start_child(
      {.program = program_, .environment = environment_, .input = input.read_end.get()});
  running_.emplace();
  running_->process = std::move(process);
  running_->input = std::move(input.write_end);
  ++num_starts_;
  ::fcntl(running_->input.get(), F_SETFL, O_NONBLOCK);
}

processes::ChildEnd PersistentProgram::end() {
  if (!running_) return {};
  if (running_->end) return *running_->end;
  const pid_t pid = running_->process.pid;
  // A program that ended by itself keeps its own exit status.
  processes::signal_group(pid, SIGKILL);
  running_->end = processes::wait_for_child(pid);
  pass_errors_on(processes::read_available(running_->process.errors), running_->errors_tail);
  return *running_->end;
}

PersistentProgram::Turn PersistentProgram::exchange_lines(const std::string& question,
                                                          std::string& answer) {
  Running& running = *running_;
  std::string unsent = question;
  auto begin = Clock::now();
  // A program that has answered before is already waiting for the line, so the time of the cell
  // begins now.
  bool taken = running.answered;
  bool ended = false;
  while (true) {
    const size_t line_end = running.output.find('\n');
    if (line_end != std::string::npos || running.output.size() > kLineBytes) {
      answer = running.output.substr(0, line_end);
      running.output.erase(0, line_end == std::string::npos ? line_end : line_end + 1);
      return Turn::Answer;
    }
    if (ended) return Turn::Ended;
    if (!send_some(running.input.get(), unsent)) unsent.clear();
    if (!taken && unread_bytes(running.input.get()) < question.size() - unsent.size()) {
      taken = true;
      begin = Clock::now();
    }
    const double limit = taken ? limits_.cell_seconds : limits_.start_seconds;
    const double longest_wait = taken ? kLongestWaitSeconds : kLookSeconds;
    const double left = limit > 0 ? limit - seconds_since(begin) : longest_wait;
    if (left <= 0) return taken ? Turn::TimedOut : Turn::NeverRead;
    std::array<pollfd, 4> polled = {
        {{.fd = running.process.exited.get(), .events = POLLIN, .revents = 0},
         {.fd = running.process.output.get(), .events = POLLIN, .revents = 0},
         {.fd = running.process.errors.get(), .events = POLLIN, .revents = 0},
         {.fd = unsent.empty() ? -1 : running.input.get(), .events = POLLOUT, .revents = 0}}};
    ::poll(polled.data(), polled.size(), static_cast<int>(1000 * std::min(left, longest_wait)) + 1);
    ended = polled[0].revents != 0;
    running.output += processes::read_available(running.process.output);
    pass_errors_on(processes::read_available(running.process.errors), running.errors_tail);
  }
}

// True if the program printed something after its last answer. The next cell is not the cause.
bool PersistentProgram::said_something_unasked() {
  if (!running_ || running_->end) return false;
  running_->output += processes::read_available(running_->process.output);
  return !running_->output.empty();
}

void PersistentProgram::check_cell(const nlohmann::json& answer) {
  const nlohmann::json* found = find_key(answer, "cell");
  if (found == nullptr) found = find_key(answer, "request.cell");
  const std::string text = answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (found == nullptr)
    fail("output",
         fmt::format(
             "wanted \"cell\": {} in the answer (or the line that was read, as \"request\"), "
             "found `{}`",
             cell_, text.substr(0, 80)));
  if (*found != cell_)
    fail("output", fmt::format("wanted the answer of cell {}, found that of another: `{}`", cell_,
                               text.substr(0, 80)));
}

nlohmann::json PersistentProgram::ask(const nlohmann::json& question) {
  nlohmann::json numbered = question;
  numbered["cell"] = ++cell_;
  const std::string line =
      numbered.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (said_something_unasked()) {
    end();
    running_.reset();
  }
  for (bool again = false;; again = true) {
    if (!running_) start();
    std::string answer;
    const Turn turn = exchange_lines(line, answer);
    if (turn == Turn::TimedOut)
      fail("timeout", fmt::format("no answer within {} s", limits_.cell_seconds));
    if (turn == Turn::NeverRead)
      fail("timeout",
           fmt::format("it did not begin to read within {} s of its start", limits_.start_seconds));
    if (turn == Turn::Ended) {
      // A program that answered earlier cells and then ended by itself may not have seen this cell.
      const bool by_itself = running_->answered && !again;
      if (!by_itself) fail_ended();
      if (!end().success()) fail_ended();
      running_.reset();
      continue;
    }
    if (answer.size() > kLineBytes)
      fail("output",
           fmt::format("wanted an answer of {} bytes at most, found a longer line: `{}...`",
                       kLineBytes, answer.substr(0, 40)));
    auto object = json_line(answer);
    if (!object)
      fail("output",
           fmt::format("wanted a line with a JSON object, found `{}`", answer.substr(0, 80)));
    check_cell(*object);
    running_->answered = true;
    running_->errors_tail.clear();
    return std::move(*object);
  }
}

void PersistentProgram::fail_ended() {
  const processes::ChildEnd ended = end();
  if (ended.signal != 0)
    fail("crash", fmt::format("the program was ended by {}", processes::signal_name(ended.signal)));
  fail("exit", fmt::format("the program ended with {} and no answer", ended.exit_code));
}

// The next cell starts the program again, because the pipes may still hold answers for this cell.
void PersistentProgram::fail(const std::string& kind, const std::string& message) {
  jobs::Failure failure;
  failure.kind = kind;
  failure.message = message;
  // If the program is killed because of its answer, its end is not reported.
  const std::optional<processes::ChildEnd> by_itself = running_->end;
  end();
  if (by_itself) {
    failure.signal = by_itself->signal;
    failure.exit_code = by_itself->signal != 0 ? -1 : by_itself->exit_code;
  }
  failure.stderr_tail = running_->errors_tail;
  running_.reset();
  throw TaskFailure(std::move(failure));
}

}  // namespace convoy::sweep
