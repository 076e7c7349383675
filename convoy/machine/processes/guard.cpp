// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/guard.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "convoy/core/base/process_descriptor.h"
#include "convoy/machine/processes/child_process.h"
#include "convoy/machine/processes/descendants.h"
#include "convoy/machine/processes/open_descriptors.h"

namespace convoy::processes {
namespace {

constexpr std::chrono::milliseconds kKillLimit{1'500};
constexpr std::chrono::milliseconds kEndLimit{5'000};  // longer than a guard has work to do

// Messages to the guard. Positive: watch this group; negative: forget it; kInOrder: the launcher is
// about to end by itself. If the stream ends without kInOrder, the launcher was killed, perhaps
// before it could report a rank that it had just started.
constexpr pid_t kInOrder = 0;

[[noreturn]] void stand_guard(int line, const std::filesystem::path& scratch,
                              const std::string& mark) {
  ::setsid();
  ::prctl(PR_SET_NAME, kGuardName);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
    ::signal(signal, SIG_IGN);
  // This process must not keep the launcher's output open for its readers. Nor must it keep the
  // other end of its own line open: the line closes when the launcher is killed.
  close_all_but(line);
  std::set<pid_t> groups;
  bool in_order = false;
  pid_t message = 0;
  ssize_t received = 0;
  while ((received = ::read(line, &message, sizeof(message))) != 0) {
    if (received < 0 && errno == EINTR) continue;
    if (received != sizeof(message)) break;
    if (message == kInOrder)
      in_order = true;
    else if (message > 0)
      groups.insert(message);
    else
      groups.erase(-message);
  }
  // A rank that could not be killed is left in `groups`.
  if (!in_order || !groups.empty()) {
    for (const pid_t group : groups) ::kill(-group, SIGKILL);
    kill_marked(mark, kKillLimit);
  }
  std::error_code ignored;
  std::filesystem::remove_all(scratch, ignored);
  ::_exit(0);
}

}  // namespace

Guard::Guard(const std::filesystem::path& scratch, const std::string& mark)
    : scratch_(scratch), mark_(mark) {
  start();
}

void Guard::start() {
  Pipe pipe = make_pipe();
  const pid_t made = fork_process();
  if (made == 0) stand_guard(pipe.read_end.get(), scratch_, mark_);
  pid_ = made;
  exited_ = process_descriptor(made);
  line_ = std::move(pipe.write_end);
}

bool Guard::replace_if_gone() {
  if (!ends_within(std::chrono::milliseconds(0))) return false;
  start();
  for (const pid_t group : groups_) tell(group);
  return true;
}

// Lets a stopped guard continue. If the guard must be killed, the launcher's own end does the rest
// of its work.
Guard::~Guard() {
  tell(kInOrder);
  line_.reset();
  if (ends_within(std::chrono::milliseconds(0))) return;
  ::kill(pid_, SIGCONT);
  if (ends_within(kEndLimit)) return;
  ::kill(pid_, SIGKILL);
  ends_within(kEndLimit);
}

bool Guard::ends_within(std::chrono::milliseconds limit) const {
  constexpr std::chrono::milliseconds kBetweenLooks{2};
  const auto until = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const pid_t ended = ::waitpid(pid_, nullptr, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno != EINTR)) return true;
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void Guard::watch(pid_t group) {
  groups_.insert(group);
  tell(group);
}

void Guard::forget(pid_t group) {
  groups_.erase(group);
  tell(-group);
}

void Guard::tell(pid_t message) {
  // The pipe's buffer holds thousands of messages, so this does not block; messages that a killed
  // guard did not read are sent to its successor (SIGPIPE is blocked while ranks run).
  [[maybe_unused]] const ssize_t sent = ::write(line_.get(), &message, sizeof(message));
}

}  // namespace convoy::processes
