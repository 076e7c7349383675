// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/run_child.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "convoy/core/base/error.h"
#include "convoy/core/base/secret_variables.h"

namespace convoy::processes {
namespace {

ChildStart shell_child(const std::string& script) { return {.program = {"/bin/sh", "-c", script}}; }

TEST(RunChild, BothStreamsTheInputAndTheCode) {
  const ChildResult result = run_child(shell_child("cat; echo reason >&2; exit 7"), "to be copied");
  EXPECT_EQ(result.output, "to be copied");
  EXPECT_EQ(result.errors, "reason\n");
  EXPECT_EQ(result.end.exit_code, 7);
  EXPECT_EQ(result.end.signal, 0);
  EXPECT_FALSE(result.end.success());
  EXPECT_FALSE(result.timed_out);
}

TEST(RunChild, WithoutInputStdinIsEmpty) {
  const ChildResult result = run_child(shell_child("wc -c"));
  EXPECT_EQ(std::atoi(result.output.c_str()), 0);
  EXPECT_TRUE(result.end.success());
}

TEST(RunChild, MoreThanAPipeHoldsInEveryDirection) {
  const std::string input(3'000'000, 'i');
  const ChildResult result = run_child(
      shell_child("head -c 2000000 /dev/zero >&2; head -c 2500000 /dev/zero; cat"), input);
  EXPECT_EQ(result.errors.size(), 2'000'000U);
  EXPECT_EQ(result.output.size(), 5'500'000U);
  EXPECT_TRUE(result.output.ends_with(input));
}

TEST(RunChild, AProgramMayLeaveItsInputUnread) {
  EXPECT_TRUE(run_child(shell_child("exit 0"), std::string(3'000'000, 'i')).end.success());
}

TEST(RunChild, TheSignalThatEndedIt) {
  const ChildResult result = run_child(shell_child("kill -SEGV $$"));
  EXPECT_EQ(result.end.signal, SIGSEGV);
  EXPECT_FALSE(result.end.success());
}

TEST(RunChild, TheLimitKillsWhatItStartedToo) {
  const ChildResult result =
      run_child(shell_child("echo $$; sleep 600 & sleep 600"), "", Seconds(0.3));
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.end.signal, SIGKILL);
  const pid_t group = std::atoi(result.output.c_str());
  ASSERT_GT(group, 1);
  // The kernel needs a moment to end the killed processes, and so does the process that adopts and
  // reaps them.
  for (int turn = 0; turn < 500 && ::kill(-group, 0) == 0; ++turn) ::usleep(10'000);
  EXPECT_EQ(::kill(-group, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(RunChild, WhatItLeavesBehindIsNotWaitedFor) {
  const auto begin = std::chrono::steady_clock::now();
  const ChildResult result = run_child(shell_child("sleep 60 & echo $!"));
  EXPECT_LT(Seconds(std::chrono::steady_clock::now() - begin), Seconds(30));
  const pid_t left = std::atoi(result.output.c_str());
  ASSERT_GT(left, 1);
  EXPECT_EQ(::kill(left, 0), 0) << "a standing server of a run outlives the shell";
  ::kill(left, SIGKILL);
}

TEST(RunChild, ItsErrorsMayGoElsewhere) {
  Pipe elsewhere = make_pipe();
  ChildStart start = shell_child("echo out; echo error >&2");
  start.errors = elsewhere.write_end.get();
  const ChildResult result = run_child(start);
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.errors, "");
  elsewhere.write_end.reset();  // the read ends at the last write end
  EXPECT_EQ(read_available(elsewhere.read_end), "error\n");
}

TEST(RunChild, OnlyAToolOfThisSessionGetsTheJobsToken) {
  ::setenv(kJobTokenVariable, "secret", 1);
  ChildStart start =
      shell_child(std::string("echo $") + kJobTokenVariable + "; cut -d' ' -f6 /proc/$$/stat");
  const std::string apart = run_child(start).output;
  start.shares_session = true;
  const std::string together = run_child(start).output;
  ::unsetenv(kJobTokenVariable);
  EXPECT_TRUE(apart.starts_with("\n")) << apart;
  EXPECT_TRUE(together.starts_with("secret\n")) << together;
  const auto session = [](const std::string& text) {
    return std::atoi(text.data() + text.find('\n'));
  };
  EXPECT_NE(session(apart), ::getsid(0));
  EXPECT_EQ(session(together), ::getsid(0));
}

TEST(RunChild, AProgramThatIsNotThereIsNamed) {
  EXPECT_THROW(run_child({.program = {"/no/such/program"}}), ConfigError);
}

TEST(RunChild, LeavesNoZombieAndNoDescriptor) {
  const auto next_descriptor = [] { return make_pipe().read_end.get(); };
  const int before = next_descriptor();
  ChildProcess child = start_child(shell_child("exit 3"));
  while (!can_be_reaped(child.pid)) ::usleep(1'000);
  EXPECT_TRUE(ends_within(child, std::chrono::milliseconds(0)));
  const pid_t pid = child.pid;
  EXPECT_EQ(finish_child(child).end.exit_code, 3);
  EXPECT_EQ(child.pid, -1);
  EXPECT_EQ(wait_for_child(pid).exit_code, -1) << "reaped once more";
  child = {};
  EXPECT_EQ(next_descriptor(), before);
}

TEST(ForkChild, ComputesInASessionOfItsOwn) {
  const int own = ::getsid(0);
  ChildProcess child = fork_child(
      [own] { return std::string(200'000, 'r') + (::getsid(0) == own ? "same" : "apart"); });
  const ChildResult result = finish_child(child);
  EXPECT_TRUE(result.end.success());
  EXPECT_EQ(result.output, std::string(200'000, 'r') + "apart");
}

TEST(ForkChild, WhatItThrowsIsItsText) {
  ChildProcess child = fork_child([]() -> std::string { throw std::runtime_error("no rate"); });
  EXPECT_EQ(finish_child(child).output, "no rate");
}

TEST(BecomeProgram, TheProgramsCodeIsTheProcesss) {
  EXPECT_EXIT(become_program({"sh", "-c", "exit 9"}), ::testing::ExitedWithCode(9), "");
  EXPECT_EQ(become_program({"no-such-program"}), std::strerror(ENOENT));
}

}  // namespace
}  // namespace convoy::processes
