// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string_view>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/process_descriptor.h"
#include "convoy/core/base/secret_variables.h"
#include "convoy/machine/processes/program_check.h"

namespace convoy::processes {
namespace {

// The child's variables as "NAME=value".
std::vector<std::string> environment_of(const ChildStart& start) {
  std::map<std::string, std::string> variables = whole_environment();
  if (!start.shares_session)
    std::erase_if(variables, [](const auto& entry) { return is_secret_variable(entry.first); });
  for (const auto& [name, value] : start.environment) variables[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct ChildPlan {
  char* const* program;
  char* const* environment;
  const sigset_t* signals;
  const cpu_set_t* cpus;      // null: as the launcher
  const rlimit* descriptors;  // null: as the launcher
  int inherited;
  int input;  // negative: /dev/null
  pid_t launcher;
  int output;
  int errors;
  int failure;  // errno goes here when exec fails
  bool shares_session;
};

// Runs between fork and exec, so it makes only calls that are safe after a fork.
[[noreturn]] void become_child(const ChildPlan& plan) {
  const auto give_up = [&] {
    const int number = errno;
    [[maybe_unused]] const ssize_t sent = ::write(plan.failure, &number, sizeof(number));
    ::_exit(127);
  };
  if (!plan.shares_session) ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The launcher may have died before the line above; then no signal comes.
  if (::getppid() != plan.launcher) ::_exit(127);
  const int input = plan.input >= 0 ? plan.input : ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input < 0 || ::dup2(input, STDIN_FILENO) < 0 || ::dup2(plan.output, STDOUT_FILENO) < 0 ||
      ::dup2(plan.errors, STDERR_FILENO) < 0)
    give_up();
  if (plan.inherited >= 0) ::fcntl(plan.inherited, F_SETFD, 0);
  if (plan.descriptors != nullptr) ::setrlimit(RLIMIT_NOFILE, plan.descriptors);
  if (plan.cpus != nullptr && ::sched_setaffinity(0, sizeof(*plan.cpus), plan.cpus) != 0) give_up();
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, plan.signals, nullptr);
  ::execvpe(plan.program[0], plan.program, plan.environment);
  give_up();
  ::_exit(127);
}

// exec reports only that a file was not found, which may be the program or the interpreter in its
// first line.
void refuse_what_can_not_run(const std::string& program) {
  if (const ProgramProblem problem = program_problem(program); problem.any())
    throw ConfigError(problem.found, {.hint = problem.to_do});
}

// Returns 0, or the errno of exec.
int wait_for_exec(int descriptor) {
  int number = 0;
  ssize_t received;
  do received = ::read(descriptor, &number, sizeof(number));
  while (received < 0 && errno == EINTR);
  return received == sizeof(number) ? number : 0;
}

// Opens a descriptor of the process. A process that cannot be watched is killed.
Descriptor watched(pid_t pid) {
  Descriptor exited = process_descriptor(pid);
  if (exited.open()) return exited;
  const int number = errno;
  signal_group(pid, SIGKILL);
  ::kill(pid, SIGKILL);  // a process that shares this session
  wait_for_child(pid);
  throw IoError(fmt::format("process {} could not be watched: pidfd_open is refused ({})", pid,
                            std::strerror(number)),
                {.hint = kProcessDescriptorsHint});
}

void stop_blocking(const Descriptor& stream) { ::fcntl(stream.get(), F_SETFL, O_NONBLOCK); }

void write_whole(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::write(descriptor, text.data(), text.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    text.remove_prefix(static_cast<size_t>(sent));
  }
}

std::string text_of(const std::function<std::string()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

pid_t fork_process() {
  const pid_t pid = ::fork();
  if (pid < 0)
    throw IoError(
        fmt::format("no process could be made: {}", std::strerror(errno)),
        {.hint =
             "raise the limit of processes (ulimit -u, pids.max), or start fewer of them here"});
  return pid;
}

ChildProcess start_child(const ChildStart& start) {
  CONVOY_INVARIANT(!start.program.empty(), "no program to start");
  refuse_what_can_not_run(start.program[0]);
  std::vector<std::string> arguments = start.program;
  std::vector<std::string> entries = environment_of(start);
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> entry_pointers = pointers_to(entries);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const int cpu : start.cpus) CPU_SET(static_cast<size_t>(cpu), &cpus);
  Pipe output = make_pipe(), errors, failure = make_pipe();
  if (start.errors < 0) errors = make_pipe();
  const ChildPlan plan{argument_pointers.data(),
                       entry_pointers.data(),
                       &start.signals,
                       start.cpus.empty() ? nullptr : &cpus,
                       start.descriptors.rlim_max == 0 ? nullptr : &start.descriptors,
                       start.inherited,
                       start.input,
                       ::getpid(),
                       output.write_end.get(),
                       start.errors < 0 ? errors.write_end.get() : start.errors,
                       failure.write_end.get(),
                       start.shares_session};
  const pid_t pid = fork_process();
  if (pid == 0) become_child(plan);
  failure.write_end.reset();
  if (const int number = wait_for_exec(failure.read_end.get()); number != 0) {
    wait_for_child(pid);
    throw ConfigError(
        fmt::format("`{}` could not be started: {}", start.program[0], std::strerror(number)),
        {.hint = "name a program that exists and may be executed"});
  }
  ChildProcess child{pid, watched(pid), std::move(output.read_end), std::move(errors.read_end)};
  stop_blocking(child.output);
  if (child.errors.open()) stop_blocking(child.errors);
  return child;
}

ChildProcess fork_child(const std::function<std::string()>& body) {
  Pipe output = make_pipe();
  const pid_t pid = fork_process();
  if (pid == 0) {
    ::setsid();
    write_whole(output.write_end.get(), text_of(body));
    ::_exit(0);
  }
  stop_blocking(output.read_end);
  return {pid, watched(pid), std::move(output.read_end), Descriptor()};
}

std::string become_program(std::vector<std::string> program) {
  const std::vector<char*> pointers = pointers_to(program);
  std::fflush(nullptr);
  ::execvp(pointers[0], pointers.data());
  return std::strerror(errno);
}

ChildEnd wait_for_child(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return {.exit_code = -1};
  if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status)};
  return {.exit_code = WEXITSTATUS(status)};
}

bool can_be_reaped(pid_t child) {
  siginfo_t end{};
  ::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOHANG | WNOWAIT);
  return end.si_pid == child;
}

bool ends_within(const ChildProcess& child, std::chrono::milliseconds limit) {
  pollfd exited{child.exited.get(), POLLIN, 0};
  return ::poll(&exited, 1, static_cast<int>(limit.count())) > 0;
}

std::string read_available(Descriptor& from) {
  constexpr size_t kMostBytes = 1 << 20;
  std::string text;
  std::array<char, 65536> buffer;
  while (from.open() && text.size() < kMostBytes) {
    const ssize_t received = ::read(from.get(), buffer.data(), buffer.size());
    if (received > 0) text.append(buffer.data(), static_cast<size_t>(received));
    if (received < 0 && errno == EINTR) continue;
    if (received < 0 && errno == EAGAIN) break;
    if (received <= 0) from.reset();
  }
  return text;
}

void signal_group(pid_t pid, int signal) { ::kill(-pid, signal); }

}  // namespace convoy::processes
