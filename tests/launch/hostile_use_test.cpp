// SPDX-License-Identifier: Apache-2.0
//
// `convoy launch` as somebody uses it who reads no manual: odd values, odd programs, odd surroundings. Each ends in order, with a
// code that says what happened and nothing left behind.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "launch/launch_process.h"

namespace convoy::testing {
namespace {

using nlohmann::json;

class HostileUse : public LaunchTest {
 protected:
  // Refused before anything ran: code 2, one JSON line last, every word in the message.
  void expect_refused(std::vector<std::string> arguments, const std::vector<std::string>& words) {
    const LaunchEnd end = run(std::move(arguments));
    EXPECT_EQ(end.status, 2) << end.errors;
    const json line = json::parse(end.last_line(), nullptr, false);
    ASSERT_TRUE(line.is_object()) << end.errors;
    EXPECT_EQ(line["code"], 2);
    for (const std::string& word : words)
      EXPECT_NE(end.errors.find(word), std::string::npos) << word << "\n" << end.errors;
    EXPECT_TRUE(nothing_left(milliseconds(200)));
  }
};

TEST_F(HostileUse, BadValuesNameTheFlag) {
  const std::vector<std::vector<std::string>> bad = {
      {"--nproc-per-node", "0"},
      {"--nproc-per-node", "-1"},
      {"--nproc-per-node", "two"},
      {"--nproc-per-node", "2.5"},
      {"--nproc-per-node", "99999999999999999999"},
      {"--nproc-per-node", "gpu"},
      {"--nnodes", "0"},
      {"--nnodes", "2:1"},
      {"--nnodes", "1:2:3"},
      {"--nnodes", ":"},
      {"--max-restarts", "-1"},
      {"--max-restarts", "x"},
      {"--node-rank", "x"},
      {"--node-rank", "2", "--nnodes", "2", "--rdzv-endpoint", "127.0.0.1:29999"},
      {"--master-port", "65536"},
      {"--redirects", "4"},
      {"--redirects", "0:4"},
      {"--redirects", "a:1"},
      {"--tee", "0:"},
      {"--local-ranks-filter", "1,,2"},
      {"--signals-to-handle", "SIGKILL"},
      {"--signals-to-handle", "SIGNOPE"},
      {"--rdzv-backend", "zookeeper"},
      {"--rdzv-backend", "etcd"},
      {"--logs-specs", "mine"},
      {"--numa-binding", "moon"},
      {"--shutdown-timeout", "-5"},
      {"--shutdown-timeout", "nan"},
      {"--early-exit-timeout", "soon"},
      {"--env-source", "nobody"},
      {"--start-method", "teleport"},
  };
  for (std::vector<std::string> arguments : bad) {
    SCOPED_TRACE(arguments[0] + " " + arguments[1]);
    std::string name = arguments[0].substr(2);
    arguments.insert(arguments.end(), {"touch", path("started")});
    const LaunchEnd end = run(arguments);
    EXPECT_EQ(end.status, 2) << end.errors;
    std::string dashed = end.errors;
    for (char& letter : dashed) letter = letter == '_' ? '-' : letter;
    EXPECT_NE(dashed.find(name), std::string::npos) << end.errors;
    EXPECT_FALSE(std::filesystem::exists(path("started")));
  }
}

TEST_F(HostileUse, BadVariableIsNamed) {
  LaunchStart what = shell(1, "true");
  what.arguments.erase(what.arguments.begin(), what.arguments.begin() + 2);
  what.environment = {{"PET_NPROC_PER_NODE", "many"}};
  const LaunchEnd end = run(what);
  EXPECT_EQ(end.status, 2);
  EXPECT_NE(end.errors.find("many"), std::string::npos) << end.errors;
}

TEST_F(HostileUse, UnknownFlagGetsASuggestion) {
  expect_refused({"--nproc-per-nod", "2", "true"}, {"nproc"});
  expect_refused({"--standalon", "true"}, {"standalone"});
}

TEST_F(HostileUse, HelpIsFoundAmongTheFlagsButNotAmongTheProgramsWords) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--help"}, {"-h"}, {"--nproc-per-node", "2", "--help"}, {"-t", "3", "-h", "true"}}) {
    const LaunchEnd end = run(words);
    EXPECT_EQ(end.status, 0) << end.errors;
    EXPECT_NE(end.output.find("--nproc-per-node"), std::string::npos);
  }
  EXPECT_NE(run({"sh", "-c", "echo $0", "--help"}).output.find("--help\n"), std::string::npos);
}

TEST_F(HostileUse, NoProgram) {
  expect_refused({}, {"program"});
  expect_refused({"--nproc-per-node", "2"}, {"program"});
  expect_refused({"--nproc-per-node", "2", "--"}, {"program"});
}

TEST_F(HostileUse, ProgramsThatCanNotRun) {
  write("plain", "#!/bin/sh\ntrue\n");
  write("lost", "#!/nowhere/sh\ntrue\n", /*executable=*/true);
  std::filesystem::create_symlink("loop", path("loop"));
  for (const std::string& program :
       {std::string("/nowhere/program"), std::string("no-such-program-in-path"),
        path("plain").string(), folder_.path().string(), path("text.bin").string(),
        path("lost").string(), path("loop").string(), std::string(""), std::string(5'000, 'x')}) {
    SCOPED_TRACE(program.substr(0, 80));
    const LaunchEnd end = run({"--nproc-per-node", "2", program});
    EXPECT_EQ(end.status, 2) << end.errors;
    EXPECT_NE(end.errors.find("could not be started"), std::string::npos) << end.errors;
    EXPECT_TRUE(nothing_left(milliseconds(200)));
  }
}

TEST_F(HostileUse, ScriptWithoutAnInterpreterLineRunsAsAShellWouldRunIt) {
  write("bare", "echo bare $RANK >> $HERE/out\n", /*executable=*/true);
  const LaunchEnd end = run({"--nproc-per-node", "2", path("bare")});
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_EQ(numbers("out").size(), 0U);
  EXPECT_TRUE(wait_for_lines("out", 2));
}

TEST_F(HostileUse, MissingPythonScriptIsPythonsError) {
  const LaunchEnd end = run({"--nproc-per-node", "2", "/nowhere/train.py"});
  EXPECT_EQ(end.status, 2) << end.errors;
  EXPECT_NE(end.errors.find("/nowhere/train.py"), std::string::npos);
}

// torchrun also replaces $local_rank and makes one $ of $$, which ruins the words of a shell script.
TEST_F(HostileUse, ArgumentsArriveAsTheyAre) {
  write("show", "#!/bin/sh\nfor word; do printf '<%s>' \"$word\"; done > $HERE/words\n", true);
  const std::vector<std::string> odd = {"",   " ",     "a b", "'",           "\"", "\\",
                                        "\n", "$HOME", "$$",  "$local_rank", "*",  "--help",
                                        "-t", "3",     "--",  "-m",          "=",  "\xff\xfe"};
  std::vector<std::string> arguments = {path("show")};
  arguments.insert(arguments.end(), odd.begin(), odd.end());
  EXPECT_EQ(run(arguments).status, 0);
  std::string wanted;
  for (const std::string& word : odd) wanted += "<" + word + ">";
  EXPECT_EQ(file("words"), wanted);
}

TEST_F(HostileUse, TenThousandArguments) {
  std::vector<std::string> arguments = {
      "--nproc-per-node", "2", "sh", "-c", "echo $# > $HERE/count.$RANK", "sh"};
  for (int word = 0; word < 10'000; ++word) arguments.push_back(fmt::format("argument-{}", word));
  EXPECT_EQ(run(arguments).status, 0);
  EXPECT_EQ(file("count.1"), "10000\n");
}

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
    EXPECT_TRUE(nothing_left(milliseconds(200)));
    // The words of a rank, or of the launcher, go nowhere, not into a file that happens to have the number.
    EXPECT_EQ(file("fds.1").find("/launch-"), std::string::npos);
  }
}

TEST_F(HostileUse, ConsoleThatGoesAwayStopsNothing) {
  // `convoy launch ... | head -1`
  LaunchStart what = shell(2,
                           "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; echo "
                           "done >> $HERE/done");
  what.before = {"sh", "-c", "\"$@\" | head -n 1 > $HERE/first; true", "sh"};
  const LaunchEnd end = run(what);
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(file("done"), "done\ndone\n");
  EXPECT_NE(file("first").find("line 0"), std::string::npos);
  EXPECT_TRUE(nothing_left(milliseconds(200)));
}

TEST_F(HostileUse, ConsoleThatNobodyReadsDoesNotHoldAStop) {
  // Output into a pipe whose reader sleeps: ranks wait, but signals are still served.
  LaunchStart what = shell(2, "echo $$ >> $HERE/pids; yes");
  what.before = {"sh", "-c", "\"$@\" | { sleep 4; cat > /dev/null; }", "sh"};
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
  EXPECT_TRUE(wait_until([&] { return !is_alive(numbers("pids")[0]); }, milliseconds(2'000)));
  ::kill(convoy, SIGTERM);
  EXPECT_TRUE(wait_until([&] { return !is_alive(convoy); }, milliseconds(2'000)));
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
  EXPECT_LT(end.seconds, 3);
  EXPECT_TRUE(nothing_left(milliseconds(500)));
}

TEST_F(HostileUse, NohupKeepsTheJobFromAHangUp) {
  // nohup ignores SIGHUP; a program it starts must not start to listen to it again.
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
    ::signal(SIGCHLD, SIG_IGN);  // then children leave no exit status
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
  // 64 descriptors are enough for some ranks; too many are refused in words, with nothing left.
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
    EXPECT_TRUE(nothing_left(milliseconds(500)));
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
  EXPECT_EQ(file("limits").substr(0, 4), "100\n");  // the ranks keep theirs
}

TEST_F(HostileUse, ThreeHundredRanks) {
  const LaunchEnd end =
      run({"--nproc-per-node", "300", "sh", "-c", "echo $RANK; [ $RANK != 299 ]"});
  EXPECT_EQ(end.status, 1) << end.errors;
  EXPECT_TRUE(nothing_left(milliseconds(500)));
}

TEST_F(HostileUse, RankThatWritesNoTextAndARankThatClosesItsStreams) {
  const LaunchEnd end = run(shell(
      2,
      "if [ $RANK = 0 ]; then head -c 100000 /dev/urandom; else exec >&- 2>&-; fi; sleep 0.1; "
      "exit $((RANK * 6))"));
  EXPECT_EQ(end.status, 6);
  EXPECT_TRUE(json::parse(end.last_line(), nullptr, false).is_object());
}

TEST_F(HostileUse, ErrorFileThatIsNoErrorFile) {
  for (const char* content :
       {"head -c 3000000 /dev/zero", "echo '[1,2]'", "echo '{\"message\": 3}'",
        "printf '{\"message\": {\"message\": \"a\\\\u0000b\\\\nc\"}}'",
        "yes '[' | head -n 100000 | tr -d '\\n'"}) {
    SCOPED_TRACE(content);
    const LaunchEnd end =
        run(shell(1, std::string(content) + " > $TORCHELASTIC_ERROR_FILE; exit 8"));
    EXPECT_EQ(end.status, 8) << end.errors.substr(0, 2000);
    EXPECT_TRUE(json::parse(end.last_line(), nullptr, false).is_object()) << end.last_line();
    std::filesystem::remove_all(path("tmp/x"));
  }
}

TEST_F(HostileUse, ErrorFileThatIsAPipeOrAFolderDoesNotHoldTheLauncher) {
  for (const char* kind : {"mkfifo $TORCHELASTIC_ERROR_FILE", "mkdir $TORCHELASTIC_ERROR_FILE",
                           "ln -s /dev/zero $TORCHELASTIC_ERROR_FILE",
                           "ln -s $TORCHELASTIC_ERROR_FILE $TORCHELASTIC_ERROR_FILE"}) {
    SCOPED_TRACE(kind);
    const LaunchEnd end =
        start(shell(1, std::string(kind) + "; exit 8"))->wait(milliseconds(5'000));
    EXPECT_FALSE(end.timed_out);
    EXPECT_EQ(end.status, 8);
  }
}

TEST_F(HostileUse, RankThatRemovesThePrivateFolder) {
  const LaunchEnd end = run(shell(2, "rm -rf $(dirname $CONVOY_STORE_FILE); exit 0"));
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_TRUE(nothing_left(milliseconds(200)));
}

TEST_F(HostileUse, WhatAJobSystemKilledAtOnceIsTidiedUpByTheNextStart) {
  // SIGKILL to everything in one moment, guard and all, as at the end of a job's time. Two live launches are left alone.
  const auto alive = start(shell(1, "echo $$ >> $HERE/alive; sleep 60"));
  const auto killed = start(shell(1, "echo $$ >> $HERE/pids; sleep 60"));
  ASSERT_TRUE(wait_for_lines("pids", 1) && wait_for_lines("alive", 1));
  const std::vector<pid_t> kept = numbers("alive");
  std::set<pid_t> spared = {alive->pid(), kept[0]};
  const auto folders = [&] {
    return std::distance(std::filesystem::directory_iterator(path("tmp")), {});
  };
  ASSERT_EQ(folders(), 2);
  for (int turn = 0; turn < 2; ++turn)
    for (const pid_t pid : survivors()) {
      std::ifstream parent_of(fmt::format("/proc/{}/stat", pid));
      std::string number, name, state;
      pid_t parent = 0;
      parent_of >> number >> name >> state >> parent;
      if (spared.contains(pid) || parent == alive->pid() || parent == kept[0]) continue;
      ::kill(pid, SIGKILL);
    }
  killed->wait();
  EXPECT_EQ(folders(), 2);
  EXPECT_EQ(run(shell(1, "true")).status, 0);
  EXPECT_EQ(folders(), 1);
  alive->signal(SIGTERM);
  alive->wait();
  EXPECT_EQ(folders(), 0);
}

TEST_F(HostileUse, RankThatKillsTheGuard) {
  // Whatever a rank does to the process that stands by, the job's own end is in order.
  const LaunchEnd end = run(shell(
      1,
      "for pid in $(cat /proc/$PPID/task/*/children); do [ $pid = $$ ] || kill -9 $pid; done; "
      "setsid sleep 61 & sleep 0.1; exit 7"));
  EXPECT_EQ(end.status, 7) << end.errors;
  EXPECT_TRUE(nothing_left(milliseconds(200)));
}

TEST_F(HostileUse, RankThatStopsTheLauncherAndLetsItGoOn) {
  const LaunchEnd end =
      run(shell(2, "[ $RANK = 0 ] && { kill -STOP $PPID; sleep 0.3; kill -CONT $PPID; }; exit 0"));
  EXPECT_EQ(end.status, 0) << end.errors;
}

TEST_F(HostileUse, LauncherInsideALauncher) {
  const std::string inner = fmt::format(
      "{}/convoy launch --standalone --nproc-per-node 2 sh -c 'echo inner $RANK/$WORLD_SIZE >> "
      "$HERE/said; exit $((RANK * 4))'",
      std::getenv("CONVOY_BIN_DIR"));
  const LaunchEnd end = run(shell(2, inner));
  EXPECT_EQ(end.status, 4) << end.errors;
  EXPECT_NE(file("said").find("inner 1/2"), std::string::npos);
  EXPECT_TRUE(nothing_left(milliseconds(500)));
}

TEST_F(HostileUse, KilledLauncherInsideALauncherLeavesNothing) {
  const std::string inner = fmt::format(
      "exec {}/convoy launch --standalone --nproc-per-node 2 sh -c 'setsid sleep 61 & echo $$ >> "
      "$HERE/pids; sleep 62'",
      std::getenv("CONVOY_BIN_DIR"));
  const auto launch = start(shell(2, inner));
  ASSERT_TRUE(wait_for_lines("pids", 4));
  launch->signal(SIGKILL);
  launch->wait();
  EXPECT_TRUE(nothing_left());
}

// What needs root: namespaces, mounts, other users.
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
  EXPECT_LT(end.seconds, 3);
  EXPECT_TRUE(nothing_left());
}

TEST_F(HostileUsePrivileged, FirstProcessOfAContainerHearsTerm) {
  // The kernel keeps signals from a first process that has no handler for them.
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
          << end.errors;  // a place for logs that never takes any is said before the start
    }
    EXPECT_NE(end.errors.find("logs"), std::string::npos) << end.errors;
    EXPECT_TRUE(nothing_left(milliseconds(200)));
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
  // As a user who may have 40 processes: the ranks that fit do not stay behind when the others do not fit.
  LaunchStart what = shell(100, "sleep 20");
  what.before = {"setpriv",        "--reuid=65533", "--regid=65533",
                 "--clear-groups", "prlimit",       "--nproc=40"};
  what.environment["TMPDIR"] = "/tmp";
  const LaunchEnd end = run(what);
  EXPECT_EQ(end.status, 12) << end.errors;
  EXPECT_NE(end.errors.find("ulimit -u"), std::string::npos) << end.errors;
  EXPECT_LT(end.seconds, 5);
  EXPECT_TRUE(nothing_left());
}

}  // namespace
}  // namespace convoy::testing
