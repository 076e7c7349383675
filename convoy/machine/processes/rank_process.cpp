// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/rank_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "convoy/core/base/error.h"
#include "convoy/core/base/process_descriptor.h"
#include "convoy/core/base/secret_variables.h"
#include "convoy/machine/processes/program_check.h"

namespace convoy::processes {
namespace {

// environ without secrets, with `added` over it, as "NAME=value".
std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    if (!is_secret_variable(name) && !added.contains(name)) merged.push_back(text);
  }
  for (const auto& [name, value] : added) merged.push_back(name + "=" + value);
  return merged;
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
};

// Between fork and exec: only calls that are safe after a fork.
[[noreturn]] void become_rank(const ChildPlan& plan) {
  const auto give_up = [&] {
    const int number = errno;
    [[maybe_unused]] const ssize_t sent = ::write(plan.failure, &number, sizeof(number));
    ::_exit(127);
  };
  ::setsid();
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

// exec reports only that a file was not found: the program, or the interpreter in its first line.
void refuse_what_can_not_run(const std::string& program) {
  if (const ProgramProblem problem = program_problem(program); problem.any())
    throw ConfigError(problem.found, {.hint = problem.to_do});
}

// 0, or the errno of exec.
int wait_for_exec(int descriptor) {
  int number = 0;
  ssize_t received;
  do received = ::read(descriptor, &number, sizeof(number));
  while (received < 0 && errno == EINTR);
  return received == sizeof(number) ? number : 0;
}

}  // namespace

RankProcess start_rank(const RankStart& start) {
  CONVOY_INVARIANT(!start.program.empty(), "no program to start");
  refuse_what_can_not_run(start.program[0]);
  std::vector<std::string> arguments = start.program;
  std::vector<std::string> entries = merged_environment(start.environment);
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> entry_pointers = pointers_to(entries);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const int cpu : start.cpus) CPU_SET(static_cast<size_t>(cpu), &cpus);
  Pipe output = make_pipe(), errors = make_pipe(), failure = make_pipe();
  const ChildPlan plan{argument_pointers.data(),
                       entry_pointers.data(),
                       &start.signals,
                       start.cpus.empty() ? nullptr : &cpus,
                       start.descriptors.rlim_max == 0 ? nullptr : &start.descriptors,
                       start.inherited,
                       start.input,
                       ::getpid(),
                       output.write_end.get(),
                       errors.write_end.get(),
                       failure.write_end.get()};
  const pid_t pid = ::fork();
  if (pid < 0)
    throw IoError(
        fmt::format("no process could be made: {}", std::strerror(errno)),
        {.hint = "raise the limit of processes (ulimit -u, pids.max), or start fewer ranks here"});
  if (pid == 0) become_rank(plan);
  failure.write_end.reset();
  RankProcess rank;
  rank.pid = pid;
  rank.exited = process_descriptor(pid);
  if (const int number = wait_for_exec(failure.read_end.get()); number != 0) {
    ::waitpid(pid, nullptr, 0);
    throw ConfigError(
        fmt::format("`{}` could not be started: {}", start.program[0], std::strerror(number)),
        {.hint = "name a program that exists and may be executed"});
  }
  if (!rank.exited.open()) {
    const int number = errno;
    signal_group(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    throw IoError(fmt::format("process {} could not be watched: pidfd_open is refused ({})", pid,
                              std::strerror(number)),
                  {.hint = kProcessDescriptorsHint});
  }
  rank.output = std::move(output.read_end);
  rank.errors = std::move(errors.read_end);
  for (const Descriptor* stream : {&rank.output, &rank.errors})
    ::fcntl(stream->get(), F_SETFL, O_NONBLOCK);
  return rank;
}

void signal_group(pid_t pid, int signal) { ::kill(-pid, signal); }

}  // namespace convoy::processes
