// SPDX-License-Identifier: Apache-2.0
//
// Runs `convoy launch` with unusual streams, disks, limits, signals and parents.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "launch/launch_process.h"

namespace convoy::testing {
namespace {

using HostileUse = LaunchTest;

TEST_F(HostileUse, StandardStreamsThatAreClosed) {
  for (const std::vector<int>& closed :
       std::vector<std::vector<int>>{{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 1, 2}}) {
    SCOPED_TRACE(fmt::format("{} closed, first {}", closed.size(), closed[0]));
    std::filesystem::remove(path("said"));
    LaunchStart what =
        shell(2,
              "echo out; echo err >&2; ls -l /proc/$$/fd > $HERE/fds.$RANK; echo $RANK >> "
              "$HERE/said; exit $((RANK * 5))");
    what.before_exec = [&closed] {
      for (const int number : closed) ::close(number);
    };
    const LaunchEnd end = run(what);
    EXPECT_EQ(end.status, 5) << end.errors;
    EXPECT_TRUE(nothing_left());
    // The output of a rank or of the launcher must not go into a file that happens to have a closed
    // descriptor's number.
    EXPECT_EQ(file("fds.1").find("/launch-"), std::string::npos);
  }
}

TEST_F(HostileUse, ConsoleThatGoesAwayStopsNothing) {
  // The output goes into a pipe that its reader closes early: `convoy launch ... | head -1`.
  LaunchStart what = shell(2,
                           "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; echo "
                           "done >> $HERE/done");
  what.before = {"sh", "-c", "\"$@\" | head -n 1 > $HERE/first; true", "sh"};
  const LaunchEnd end = run(what);
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(file("done"), "done\ndone\n");
  EXPECT_NE(file("first").find("line 0"), std::string::npos);
  EXPECT_TRUE(nothing_left());
}

TEST_F(HostileUse, ConsoleThatNobodyReadsDoesNotHoldAStop) {
  // The output goes into a pipe whose reader waits for the end of the test. The ranks wait, but the
  // launcher still handles signals.
  LaunchStart what = shell(2, "echo $$ >> $HERE/pids; yes");
  what.before = {"sh", "-c",
                 "\"$@\" | { while [ ! -e $HERE/over ]; do sleep 0.05; done; cat > /dev/null; }",
                 "sh"};
  const auto launch = start(what);
  ASSERT_TRUE(wait_for_lines("pids", 2));
  pid_t convoy = -1;
  for (const pid_t pid : survivors()) {
    std::ifstream comm(fmt::format("/proc/{}/comm", pid));
    std::ifstream stat(fmt::format("/proc/{}/cmdline", pid));
    std::string name, command;
    std::getline(comm, name);
    std::getline(stat, command, '\0');
    if (name == "convoy" && (convoy < 0 || pid < convoy)) convoy = pid;
  }
  ASSERT_GT(convoy, 0);
  std::this_thread::sleep_for(milliseconds(300));
  ::kill(convoy, SIGTERM);
  EXPECT_TRUE(wait_until([&] { return !is_alive(numbers("pids")[0]); }, milliseconds(20'000)));
  ::kill(convoy, SIGTERM);
  EXPECT_TRUE(wait_until([&] { return !is_alive(convoy); }, milliseconds(20'000)));
  write("over", "now\n");
  launch->wait();
}

TEST_F(HostileUse, FolderForTemporaryFilesThatIsNotThere) {
  LaunchStart what = shell(2, "echo $CONVOY_STORE_FILE > $HERE/store");
  what.environment["TMPDIR"] = "/nowhere/at/all";
  const LaunchEnd end = run(what);
  EXPECT_EQ(end.status, 0) << end.errors;
  std::filesystem::path store = file("store");
  EXPECT_TRUE(store.string().starts_with("/tmp/")) << store;
  EXPECT_FALSE(std::filesystem::exists(store.parent_path()));
}

TEST_F(HostileUse, LogFolderThatCanNotBeMadeIsNamedAndStopsNothing) {
  write("file", "here");
  for (const std::string& folder :
       {path("file").string(), path("file/below").string(), std::string("/proc/nowhere")}) {
    const LaunchEnd end = run({"--log-dir", folder, "sh", "-c", "echo the output"});
    EXPECT_EQ(end.status, 0);
    EXPECT_NE(end.errors.find(folder), std::string::npos) << end.errors;
    EXPECT_NE(end.output.find("the output"), std::string::npos);
  }
}

TEST_F(HostileUse, ConsoleWithoutSpaceKeepsTheExitCode) {
  for (const char* streams : {"2>/dev/full", ">/dev/full", ">/dev/full 2>&1"}) {
    LaunchStart what = shell(2, "echo out; echo err >&2; exit $((RANK * 5))");
    what.before = {"sh", "-c", fmt::format("exec \"$@\" {}", streams), "sh"};
    EXPECT_EQ(run(what).status, 5) << streams;
    what.arguments = {"/nowhere/program"};
    EXPECT_EQ(run(what).status, 2) << streams;
  }
}

TEST_F(HostileUse, ConsoleThatIsGoneKeepsTheExitCode) {
  LaunchStart what = shell(2, "sleep 0.1; echo out; echo err >&2; exit $((RANK * 5))");
  what.before = {"bash", "-c", "\"$@\" 2>&1 | true; exit ${PIPESTATUS[0]}", "bash"};
  EXPECT_EQ(run(what).status, 5);
}

TEST_F(HostileUse, AlmostEmptyEnvironment) {
  LaunchStart what;
  what.arguments = {"--nproc-per-node", "2", "/bin/sh", "-c", "true"};
  what.before = {"env", "-i"};
  EXPECT_EQ(run(what).status, 0);
  what.before = {"env", "-u", "HOME", "-u", "PATH", "-u", "TMPDIR", "-u", "USER"};
  EXPECT_EQ(run(what).status, 0);
}

TEST_F(HostileUse, UnderNohupSetsidAndTimeout) {
  for (const std::vector<std::string>& around : std::vector<std::vector<std::string>>{
           {"nohup"}, {"setsid", "--wait"}, {"timeout", "20"}, {"nice"}, {"stdbuf", "-o0"}}) {
    LaunchStart what = shell(2, "exit $((RANK * 3))");
    what.before = around;
    EXPECT_EQ(run(what).status, 3) << around[0];
  }
}

TEST_F(HostileUse, TimeoutEndsTheJobWithItsOwnCode) {
  LaunchStart what = shell(2, "echo $$ >> $HERE/pids; exec sleep 60");
  what.before = {"timeout", "1"};
  const LaunchEnd end = run(what);
  EXPECT_EQ(end.status, 124);
  EXPECT_LT(end.seconds, kHeldUpSeconds);
  EXPECT_TRUE(nothing_left());
}

TEST_F(HostileUse, NohupKeepsTheJobFromAHangUp) {
  // nohup ignores SIGHUP, and a program under it must not handle that signal again.
  LaunchStart what = shell(1, "echo $$ >> $HERE/pids; sleep 0.6; echo done > $HERE/done");
  what.before = {"nohup"};
  const auto launch = start(what);
  ASSERT_TRUE(wait_for_lines("pids", 1));
  launch->signal(SIGHUP);
  EXPECT_EQ(launch->wait().status, 0) << launch->errors();
  EXPECT_EQ(file("done"), "done\n");
}

TEST_F(HostileUse, InTheBackgroundOfAShellScript) {
  // A shell without job control starts background commands with SIGINT ignored.
  LaunchStart what = shell(2, "echo $RANK >> $HERE/said");
  what.before = {"sh", "-c", "\"$@\" & wait $!", "sh"};
  EXPECT_EQ(run(what).status, 0);
  EXPECT_TRUE(wait_for_lines("said", 2));
}

TEST_F(HostileUse, SignalsThatAreBlockedOrIgnoredAtTheStart) {
  LaunchStart what = shell(2, "echo $$ >> $HERE/pids; exec sleep 60");
  what.before_exec = [] {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    ::signal(SIGCHLD, SIG_IGN);  // children leave no exit status then
    ::signal(SIGPIPE, SIG_IGN);
  };
  const auto launch = start(what);
  ASSERT_TRUE(wait_for_lines("pids", 2));
  launch->signal(SIGTERM);
  const LaunchEnd end = launch->wait(milliseconds(5'000));
  EXPECT_FALSE(end.timed_out);
  EXPECT_NE(end.status, 0);
  EXPECT_TRUE(nothing_left());
}

TEST_F(HostileUse, IgnoredChildSignalDoesNotLoseTheExitCode) {
  LaunchStart what = shell(2, "sleep 0.1; exit 9");
  what.before_exec = [] { ::signal(SIGCHLD, SIG_IGN); };
  EXPECT_EQ(run(what).status, 9);
}

TEST_F(HostileUse, FewDescriptors) {
  // 64 descriptors are enough for some ranks. More ranks are refused in words, and nothing remains.
  for (const int ranks : {4, 64}) {
    LaunchStart what = shell(ranks, "echo $RANK >> $HERE/said");
    what.before_exec = [] {
      const rlimit limit{64, 64};
      ::setrlimit(RLIMIT_NOFILE, &limit);
    };
    const LaunchEnd end = run(what);
    if (ranks == 4) {
      EXPECT_EQ(end.status, 0) << end.errors;
    }
    if (ranks == 64) {
      EXPECT_EQ(end.status, 12) << end.errors;
      EXPECT_NE(end.errors.find("ulimit -n"), std::string::npos) << end.errors;
    }
    EXPECT_TRUE(nothing_left());
  }
}

TEST_F(HostileUse, LowSoftLimitOfDescriptorsIsRaised) {
  LaunchStart what = shell(64, "ulimit -Sn >> $HERE/limits");
  what.before_exec = [] {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 100;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  };
  EXPECT_EQ(run(what).status, 0);
  EXPECT_TRUE(wait_for_lines("limits", 64));
  EXPECT_EQ(file("limits").substr(0, 4), "100\n");  // the ranks keep their limit
}

class HostileUsePrivileged : public HostileUse {
 protected:
  void SetUp() override {
    if (!is_root()) GTEST_SKIP() << "needs root";
    if (std::system("unshare -m -p -f --mount-proc true 2>/dev/null") != 0)
      GTEST_SKIP() << "needs unshare and namespaces";
  }
};

TEST_F(HostileUsePrivileged, AsTheFirstProcessOfAContainer) {
  LaunchStart what =
      shell(2, "setsid sleep 61 & [ $RANK = 1 ] && { sleep 0.1; exit 6; }; sleep 60");
  what.before = {"unshare", "-p", "-f", "--mount-proc"};
  const LaunchEnd end = run(what);
  EXPECT_EQ(end.status, 6) << end.errors;
  EXPECT_LT(end.seconds, kHeldUpSeconds);
  EXPECT_TRUE(nothing_left());
}

TEST_F(HostileUsePrivileged, FirstProcessOfAContainerHearsTerm) {
  // The kernel does not deliver signals to the first process of a namespace if it has no handler
  // for them.
  LaunchStart what = shell(2, "echo $$ >> $HERE/pids; exec sleep 60");
  what.before = {"unshare", "-p", "-f", "--mount-proc", "--kill-child"};
  const auto launch = start(what);
  ASSERT_TRUE(wait_for_lines("pids", 2));
  for (const pid_t pid : survivors()) {
    std::ifstream status(fmt::format("/proc/{}/status", pid));
    std::string line, numbers;
    while (std::getline(status, line))
      if (line.starts_with("NSpid:")) numbers = line;
    if (numbers.ends_with("\t1")) ::kill(pid, SIGTERM);
  }
  EXPECT_EQ(launch->wait(milliseconds(5'000)).status, 128 + SIGTERM);
}

TEST_F(HostileUsePrivileged, FullDiskForTemporaryFiles) {
  LaunchStart what = shell(2, "echo $RANK >> $HERE/said");
  what.before = {"unshare",
                 "-m",
                 "sh",
                 "-c",
                 "mount -t tmpfs -o size=64k,nr_inodes=64 none $TMPDIR && head -c 100000 "
                 "/dev/zero > $TMPDIR/fill 2>/dev/null; \"$@\"",
                 "sh"};
  const LaunchEnd end = run(what);
  EXPECT_TRUE(end.status == 0 || end.status == 12) << end.status << end.errors;
}

TEST_F(HostileUsePrivileged, L16_LogFolderOfAFullDiskAndAReadOnlyOne) {
  for (const char* mount :
       {"mount -t tmpfs -o size=64k none $HERE/logs", "mount -t tmpfs -o ro none $HERE/logs"}) {
    SCOPED_TRACE(mount);
    std::filesystem::create_directories(path("logs"));
    std::filesystem::remove(path("said"));
    LaunchStart what = shell(2, "yes abcdefghij | head -n 100000; echo $RANK >> $HERE/said",
                             {"--log-dir", path("logs"), "--redirects", "3"});
    what.before = {"unshare", "-m", "sh", "-c", std::string(mount) + " && \"$@\"", "sh"};
    const LaunchEnd end = run(what);
    const bool read_only = std::string(mount).find("ro") != std::string::npos;
    if (end.status == 0) {
      EXPECT_TRUE(wait_for_lines("said", 2));
    } else {
      EXPECT_TRUE(read_only)
          << end.errors;  // an unusable folder for logs is reported before the start
    }
    EXPECT_NE(end.errors.find("logs"), std::string::npos) << end.errors;
    EXPECT_TRUE(nothing_left());
  }
}

TEST_F(HostileUsePrivileged, L10_HostThatDoesNotKnowItsOwnName) {
  for (const char* network : {"ip link set lo up", "true"}) {
    LaunchStart what = shell(2, "echo $MASTER_ADDR >> $HERE/said");
    what.before = {
        "unshare", "-n", "-u",
        "sh",      "-c", std::string("hostname nobody-knows-me.invalid; ") + network + "; \"$@\"",
        "sh"};
    EXPECT_EQ(run(what).status, 0) << network;
  }
  EXPECT_EQ(file("said"), "127.0.0.1\n127.0.0.1\n127.0.0.1\n127.0.0.1\n");
}

TEST_F(HostileUsePrivileged, FewProcesses) {
  // Runs as a user who may have 40 processes. If not all ranks fit, the ranks that were started
  // must not remain. The program is copied, because that user may enter neither the checkout nor
  // the test's folder, which has mode 0700.
  std::string open_folder = "/tmp/convoy-open-XXXXXX";
  ASSERT_NE(::mkdtemp(open_folder.data()), nullptr);
  std::filesystem::permissions(open_folder, std::filesystem::perms(0755));
  std::filesystem::copy_file(built_program(), open_folder + "/convoy");
  std::filesystem::permissions(open_folder + "/convoy", std::filesystem::perms(0755));
  LaunchStart what = shell(100, "sleep 20");
  what.program = open_folder + "/convoy";
  // The limit counts all processes of a user, so the user must have no others.
  const int user = 20'000 + ::getpid() % 40'000;
  what.before = {"setpriv",
                 fmt::format("--reuid={}", user),
                 fmt::format("--regid={}", user),
                 "--clear-groups",
                 "prlimit",
                 "--nproc=40"};
  what.environment["TMPDIR"] = "/tmp";
  const LaunchEnd end = run(what);
  std::filesystem::remove_all(open_folder);
  EXPECT_EQ(end.status, 12) << end.errors;
  EXPECT_NE(end.errors.find("ulimit -u"), std::string::npos) << end.errors;
  EXPECT_LT(end.seconds, 15);
  EXPECT_TRUE(nothing_left());
}

}  // namespace
}  // namespace convoy::testing
