// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/health/process_state.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

namespace convoy::launch {
namespace {

// Runs `work` in a process and reads its state until the state is `letter`. Then kills the process
// group.
ProcessState state_of(const std::function<void()>& work, char letter) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setpgid(0, 0);
    work();
    ::_exit(0);
  }
  ::setpgid(pid, pid);
  std::optional<ProcessState> state = read_process_state(pid);
  while (state && state->letter != letter && state->letter != 'Z') {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    state = read_process_state(pid);
  }
  ::kill(-pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return state.value_or(ProcessState());
}

TEST(ProcessState, SaysWhyAKilledProcessIsStillThere) {
  const ProcessState running = state_of(
      [] {
        for (volatile int turn = 0;;) turn = turn + 1;
      },
      'R');
  EXPECT_TRUE(waits_for_processor(running)) << running.letter;
  EXPECT_NE(why_not_ended(running).find("processor"), std::string::npos);
  // The parent of a vfork sleeps inside the kernel until its child ends.
  const ProcessState inside = state_of(
      [] {
        if (::vfork() == 0) ::pause();
      },
      'D');
  EXPECT_FALSE(waits_for_processor(inside));
  EXPECT_NE(why_not_ended(inside).find("inside the kernel"), std::string::npos) << inside.letter;
  const ProcessState ended = state_of([] {}, 'Z');
  EXPECT_FALSE(waits_for_processor(ended));
  EXPECT_NE(why_not_ended(ended).find("has ended"), std::string::npos) << ended.letter;
}

}  // namespace
}  // namespace convoy::launch
