// SPDX-License-Identifier: Apache-2.0
//
// Runs `convoy launch` in a terminal: types texts and Ctrl-C, and reads the screen.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <unistd.h>
#include <utmp.h>

#include <cstdlib>
#include <mutex>
#include <thread>

#include "launch/launch_process.h"

namespace convoy::testing {
namespace {

// The launcher runs in the foreground of a terminal, as a user starts it.
class Terminal : public LaunchTest {
 protected:
  // Starts `convoy launch` as the leader of a session with its own terminal.
  void open(const LaunchStart& what) {
    int slave = -1;
    ASSERT_EQ(::openpty(&master_, &slave, nullptr, nullptr, nullptr), 0);
    ::fcntl(master_, F_SETFD, FD_CLOEXEC);
    LaunchStart here = what;
    here.own_group = false;
    here.before_exec = [slave] { ::login_tty(slave); };
    launch_ = start(here);
    ::close(slave);
    reader_ = std::thread([this] {
      char bytes[4096];
      for (ssize_t size; (size = ::read(master_, bytes, sizeof(bytes))) > 0;) {
        const std::lock_guard lock(mutex_);
        shown_.append(bytes, static_cast<size_t>(size));
      }
    });
  }
  LaunchEnd end(milliseconds patience) {
    LaunchEnd end = launch_->wait(patience);
    reader_.join();
    return end;
  }
  std::string shown() {
    const std::lock_guard lock(mutex_);
    return shown_;
  }
  // Waits until the screen shows these words. The terminal makes "\r\n" of each line end.
  bool wait_until_shown(const std::string& words) {
    return wait_until([&] { return shown().find(words) != std::string::npos; },
                      milliseconds(20'000));
  }
  void type(const std::string& keys) const {
    ASSERT_EQ(::write(master_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  ~Terminal() override {
    if (reader_.joinable()) {
      launch_.reset();
      reader_.join();
    }
    ::close(master_);
  }

  int master_ = -1;
  std::unique_ptr<LaunchProcess> launch_;
  std::thread reader_;
  std::mutex mutex_;
  std::string shown_;
};

TEST_F(Terminal, ControlCReachesEveryRankOnce) {
  open(shell(2,
             "trap 'echo INT >> $HERE/got.$RANK' INT; " + kReady + "while :; do sleep 0.02; done"));
  ASSERT_TRUE(wait_for_lines("pids", 2));
  ASSERT_EQ(::write(master_, "\x03", 1), 1);
  ASSERT_TRUE(wait_for_lines("got.0", 1) && wait_for_lines("got.1", 1));
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(file("got.0") + file("got.1"), "INT\nINT\n");
  ASSERT_EQ(::write(master_, "\x03", 1), 1);  // a second Ctrl-C ends the ranks at once
  EXPECT_EQ(end(milliseconds(20'000)).status, 128 + SIGINT);
  EXPECT_TRUE(nothing_left());
}

TEST_F(Terminal, FirstRankReadsWhatThePersonTypes) {
  open(shell(2,
             "printf 'name? '; echo x >> $HERE/asked; read name; echo \"$RANK: ${name:-nothing}\" "
             ">> $HERE/got.$RANK"));
  ASSERT_TRUE(wait_for_lines("asked", 2));
  ASSERT_EQ(::write(master_, "Ada\n", 4), 4);
  EXPECT_EQ(end(milliseconds(20'000)).status, 0) << shown();
  EXPECT_EQ(file("got.0") + file("got.1"), "0: Ada\n1: nothing\n");
}

TEST_F(Terminal, WindowThatIsClosedEndsTheJob) {
  open(shell(2, kReady + "sleep 60"));
  ASSERT_TRUE(wait_for_lines("pids", 2));
  launch_->signal(SIGHUP);
  EXPECT_EQ(end(milliseconds(20'000)).status, 128 + SIGHUP);
  EXPECT_TRUE(nothing_left());
}

TEST_F(Terminal, RankThatAsksThePersonGetsAnErrorInsteadOfBeingStopped) {
  // A password prompt opens /dev/tty, and would be stopped for ever in a background process group
  // of the session.
  open(shell(1, "read answer < /dev/tty && exit 1; exit 0"));
  EXPECT_EQ(end(milliseconds(20'000)).status, 0) << shown();
}

TEST_F(Terminal, PromptIsShownBeforeItIsAnswered) {
  // The prompts of input(), of pdb and of a shell's `read` do not end a line before the answer.
  open(shell(2,
             "[ $RANK = 0 ] || exit 0; echo welcome; printf 'name? '; read name; "
             "echo \"hello $name\"; printf '(Pdb) ' >&2; read word; echo \"$word\" > $HERE/word"));
  ASSERT_TRUE(wait_until_shown(" name? ")) << shown();
  EXPECT_LT(shown().find(" welcome\r\n"), shown().find(" name? ")) << shown();
  type("Ada\n");
  ASSERT_TRUE(wait_until_shown("hello Ada\r\n")) << shown();
  ASSERT_TRUE(wait_until_shown(" (Pdb) ")) << shown();
  type("continue\n");
  EXPECT_EQ(end(milliseconds(20'000)).status, 0) << shown();
  EXPECT_EQ(file("word"), "continue\n");
}

TEST_F(Terminal, LinesOfOtherRanksDoNotMixWithAPrompt) {
  open(shell(2,
             "if [ $RANK = 0 ]; then printf 'name? '; read name; echo \"I am $name\"; exit 0; fi; "
             "while [ ! -e $HERE/asked ]; do sleep 0.02; done; printf 'half of '; sleep 0.5; "
             "echo 'a line'; echo x > $HERE/written"));
  ASSERT_TRUE(wait_until_shown(" name? ")) << shown();
  write("asked", "now\n");
  ASSERT_TRUE(wait_until_shown("half of a line\r\n")) << shown();
  type("Ada\n");
  EXPECT_EQ(end(milliseconds(20'000)).status, 0) << shown();
  EXPECT_NE(shown().find(" name? \r\n"), std::string::npos) << shown();
  EXPECT_NE(shown().find(" I am Ada\r\n"), std::string::npos) << shown();
}

TEST_F(Terminal, ProgressBarIsDrawnInPlace) {
  open(shell(1,
             "for percent in 10 20; do printf '\\r%s%% done' $percent >&2; "
             "while [ ! -e $HERE/$percent ]; do sleep 0.02; done; done; echo >&2"));
  ASSERT_TRUE(wait_until_shown(" 10% done")) << shown();
  write("10", "go on\n");
  ASSERT_TRUE(wait_until_shown(" 20% done")) << shown();
  EXPECT_EQ(shown().find('\n'), std::string::npos) << shown();
  write("20", "go on\n");
  EXPECT_EQ(end(milliseconds(20'000)).status, 0) << shown();
}

}  // namespace
}  // namespace convoy::testing
