// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/rewards/reward_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <utility>

#include "convoy/core/base/broken_pipes.h"
#include "convoy/core/base/printable_text.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::rewards {
namespace {

constexpr size_t kLongestLine = 1 << 16;
constexpr size_t kTailBytes = 600;
constexpr size_t kQuotedBytes = 80;
// A program whose stdin has ended may write its files for this long.
constexpr std::chrono::milliseconds kEndTime{2000};
constexpr double kLongestWaitSeconds = 1;
// Time between checks whether a program reads, since no event tells it.
constexpr double kLookSeconds = 0.02;

std::optional<double> finite_number(std::string_view line) {
  line = trimmed(line, " \t\r");
  double value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc() || end != line.data() + line.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

// Number of bytes in the pipe that are not yet read; 0 if the system cannot tell.
size_t unread_bytes(int descriptor) {
  int count = 0;
  return ::ioctl(descriptor, FIONREAD, &count) == 0 ? static_cast<size_t>(count) : 0;
}

std::string quoted_bytes(std::string_view text) {
  return fmt::format("`{}{}`", printable_text(text.substr(0, kQuotedBytes)),
                     text.size() > kQuotedBytes ? "..." : "");
}

}  // namespace

struct RewardProgram::Question {
  size_t texts = 0;
  std::string unsent;
  size_t sent = 0;  // bytes
  const TakeValue& take;
  size_t answered = 0;                     // texts
  Clock::time_point since = Clock::now();  // its limit counts from here
};

RewardProgram::RewardProgram(const std::string& command, ProgramLimits limits) : limits_(limits) {
  Pipe input = make_pipe();
  // A Python program's numbers arrive line by line, without a flush in it.
  process_ = processes::start_child({.program = {"sh", "-c", command},
                                     .environment = {{"PYTHONUNBUFFERED", "1"}},
                                     .input = input.read_end.get()});
  input_ = std::move(input.write_end);
  ::fcntl(input_.get(), F_SETFL, O_NONBLOCK);
}

RewardProgram::~RewardProgram() {
  input_.reset();
  if (!is_reaped_) processes::ends_within(process_, kEndTime);
  end();
}

void RewardProgram::end() {
  if (is_reaped_) return;
  // A program that ended by itself keeps its own exit status.
  processes::signal_group(process_.pid, SIGKILL);
  status_ = processes::wait_for_child(process_.pid);
  is_reaped_ = true;
  pass_errors_on(processes::read_available(process_.errors));
}

void RewardProgram::pass_errors_on(std::string_view text) {
  errors_tail_ += text;
  if (errors_tail_.size() > kTailBytes) errors_tail_.erase(0, errors_tail_.size() - kTailBytes);
  while (!text.empty()) {
    const ssize_t sent = ::write(STDERR_FILENO, text.data(), text.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    text.remove_prefix(static_cast<size_t>(sent));
  }
}

ProgramFault RewardProgram::with_words(ProgramFault fault) const {
  std::string words(trimmed(errors_tail_, " \t\r\n"));
  std::replace(words.begin(), words.end(), '\n', ' ');
  if (!words.empty()) fault.what += fmt::format("; the program wrote: {}", printable_text(words));
  return fault;
}

std::optional<ProgramFault> RewardProgram::ask(const std::vector<std::string>& lines,
                                               const TakeValue& take,
                                               const std::function<void()>& check) {
  if (lines.empty()) return std::nullopt;
  Question question{.texts = lines.size(), .unsent = {}, .take = take};
  for (const std::string& line : lines) question.unsent += line + '\n';
  try {
    std::optional<ProgramFault> fault = exchange(question, check);
    if (!fault) return std::nullopt;
    end();
    return with_words(std::move(*fault));
  } catch (...) {
    end();
    throw;
  }
}

std::optional<ProgramFault> RewardProgram::exchange(Question& question,
                                                    const std::function<void()>& check) {
  // A line that came after the last look at the step before belongs to no text.
  read_output();
  if (!output_.empty())
    return ProgramFault{.text = 0,
                        .what = fmt::format("before it got this text, the program {}", surplus())};
  while (true) {
    if (auto fault = take_lines(question)) return fault;
    if (question.answered == question.texts) return fault_of_surplus(question);
    if (has_ended_) return fault_of_end(question);
    if (auto fault = fault_of_closing(question)) return fault;
    check();
    send(question);
    if (auto fault = fault_of_time(question)) return fault;
    listen(question);
  }
}

void RewardProgram::read_output() {
  if (!is_reaped_) output_ += processes::read_available(process_.output);
}

std::string RewardProgram::surplus() const {
  return fmt::format("wrote more lines than it was given texts: {}",
                     quoted_bytes(output_.substr(0, output_.find('\n'))));
}

std::optional<ProgramFault> RewardProgram::take_lines(Question& question) {
  for (size_t end = output_.find('\n');
       end != std::string::npos && question.answered < question.texts; end = output_.find('\n')) {
    const std::string line = output_.substr(0, end);
    const std::optional<double> number = finite_number(line);
    if (!number)
      return ProgramFault{.text = question.answered,
                          .what = fmt::format("wanted a line with one finite number, found {}",
                                              quoted_bytes(line))};
    output_.erase(0, end + 1);
    question.take(question.answered++, *number);
    question.since = Clock::now();
  }
  if (question.answered < question.texts && output_.size() > kLongestLine)
    return ProgramFault{
        .text = question.answered,
        .what = fmt::format(
            "wanted a line with one finite number, found a line of more than {} bytes: {}",
            kLongestLine, quoted_bytes(output_))};
  if (question.answered == question.texts && !question.unsent.empty())
    return ProgramFault{.text = question.texts - 1,
                        .what = "the program answered before it had read the text",
                        .moves_numbers = true};
  return std::nullopt;
}

// After the last number. Does not wait: a line that comes later is found before the next step.
std::optional<ProgramFault> RewardProgram::fault_of_surplus(const Question& question) {
  read_output();
  if (output_.empty()) return std::nullopt;
  return ProgramFault{.text = question.texts - 1,
                      .what = fmt::format("the program {}", surplus()),
                      .moves_numbers = true};
}

std::optional<ProgramFault> RewardProgram::fault_of_end(const Question& question) {
  end();
  const std::string how =
      status_.signal != 0 ? fmt::format("was ended by {}", processes::signal_name(status_.signal))
                          : fmt::format("ended with exit code {}", status_.exit_code);
  return ProgramFault{.text = question.answered,
                      .what = fmt::format("the program {} after {} of {} numbers", how,
                                          question.answered, question.texts)};
}

std::optional<ProgramFault> RewardProgram::fault_of_closing(const Question& question) {
  const bool reads_no_more =
      has_closed_input_ && (!question.unsent.empty() || unread_bytes(input_.get()) > 0);
  if (!reads_no_more && process_.output.open()) return std::nullopt;
  // Mostly the program is about to end, and its exit status says more.
  if (processes::ends_within(process_, kEndTime)) return fault_of_end(question);
  return ProgramFault{
      .text = question.answered,
      .what = fmt::format("the program closed its {} after {} of {} numbers",
                          reads_no_more ? "stdin" : "stdout", question.answered, question.texts)};
}

std::optional<ProgramFault> RewardProgram::fault_of_time(const Question& question) const {
  const double spent = seconds_since(question.since);
  if (has_begun_ && spent > limits_.number_seconds)
    return ProgramFault{
        .text = question.answered,
        .what = fmt::format("no number within {} s (timeout_s), after {} of {} numbers",
                            limits_.number_seconds, question.answered, question.texts)};
  if (!has_begun_ && spent > limits_.start_seconds)
    return ProgramFault{.text = 0,
                        .what = fmt::format("the program did not begin to read within {} s",
                                            limits_.start_seconds)};
  return std::nullopt;
}

void RewardProgram::send(Question& question) {
  const BlockedBrokenPipes blocked;
  while (!question.unsent.empty()) {
    const ssize_t sent = ::write(input_.get(), question.unsent.data(), question.unsent.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) break;  // a full pipe; or no reader, which listen() tells
    question.unsent.erase(0, static_cast<size_t>(sent));
    question.sent += static_cast<size_t>(sent);
  }
  if (has_begun_ || unread_bytes(input_.get()) >= question.sent) return;
  has_begun_ = true;
  question.since = Clock::now();
}

void RewardProgram::listen(const Question& question) {
  std::array<pollfd, 4> polled = {
      {{.fd = process_.exited.get(), .events = POLLIN, .revents = 0},
       {.fd = process_.output.get(), .events = POLLIN, .revents = 0},
       {.fd = process_.errors.get(), .events = POLLIN, .revents = 0},
       {.fd = has_closed_input_ ? -1 : input_.get(),
        .events = static_cast<short>(question.unsent.empty() ? 0 : POLLOUT),
        .revents = 0}}};
  const double limit = has_begun_ ? limits_.number_seconds : limits_.start_seconds;
  const double left = std::max(0.0, limit - seconds_since(question.since));
  const double wait = std::min(left, has_begun_ ? kLongestWaitSeconds : kLookSeconds);
  ::poll(polled.data(), polled.size(), static_cast<int>(1000 * wait) + 1);
  has_ended_ = polled[0].revents != 0;
  has_closed_input_ = has_closed_input_ || (polled[3].revents & POLLERR) != 0;
  read_output();
  pass_errors_on(processes::read_available(process_.errors));
}

}  // namespace convoy::rewards
