// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/launcher.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/launch/supervisor/launcher_fixture_test.h"
#include "convoy/machine/processes/error_file.h"
#include "convoy/machine/processes/memory_kills.h"
#include "convoy/machine/processes/reserved_port.h"
#include "load/slowdown.h"

namespace convoy::launch {
namespace {

using std::chrono::milliseconds;
namespace fs = std::filesystem;

TEST_F(Launcher, GivesEachRankTorchrunsEnvironment) {
  LaunchSpec three = spec(3, "env > $HERE/env.$RANK");
  three.environment = {{"ADDED", "yes"}};
  three.job.run_id = "run7";
  EXPECT_EQ(run_ranks(three).exit_code, 0);
  std::string ports;
  for (int rank = 0; rank < 3; ++rank) {
    const std::string number = std::to_string(rank);
    const std::string env = "\n" + file("env." + number);
    for (const std::string& line :
         {"RANK=" + number, "LOCAL_RANK=" + number, std::string("WORLD_SIZE=3"),
          std::string("LOCAL_WORLD_SIZE=3"), std::string("GROUP_RANK=0"),
          std::string("GROUP_WORLD_SIZE=1"), "ROLE_RANK=" + number,
          std::string("ROLE_WORLD_SIZE=3"), std::string("ROLE_NAME=default"),
          std::string("MASTER_ADDR=127.0.0.1"), std::string("TORCHELASTIC_RESTART_COUNT=0"),
          std::string("TORCHELASTIC_MAX_RESTARTS=0"), std::string("TORCHELASTIC_RUN_ID=run7"),
          std::string("TORCHELASTIC_USE_AGENT_STORE=False"), std::string("ADDED=yes")})
      EXPECT_NE(env.find("\n" + line + "\n"), std::string::npos) << line << env;
    const size_t port = env.find("\nMASTER_PORT=");
    ASSERT_NE(port, std::string::npos);
    const std::string value = env.substr(port + 13, env.find('\n', port + 1) - port - 13);
    EXPECT_GT(std::stoi(value), 1023);
    if (rank == 0) ports = value;
    EXPECT_EQ(value, ports);
    EXPECT_NE(env.find("/attempt_0/" + number + "/error.json\n"), std::string::npos);
  }
}

TEST_F(Launcher, LeavesNoScratchFolderAndNoProcess) {
  run(2, "echo $$ >> $HERE/pids; echo $CONVOY_STORE_FILE > $HERE/store");
  std::string store = file("store");
  store.pop_back();
  EXPECT_FALSE(fs::exists(fs::path(store).parent_path()));
  EXPECT_TRUE(all_gone("pids", milliseconds(0)));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

// Returns the processor time of this process and its children, in seconds. Wall time depends on the
// load of the machine (bench/launch.py measures it).
double processor_seconds() {
  double sum = 0;
  for (const int whose : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    getrusage(whose, &used);
    for (const timeval& time : {used.ru_utime, used.ru_stime})
      sum += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  return sum;
}

TEST_F(Launcher, TwoRanksTakeLessThanFiftyMillisecondsOfAProcessor) {
  double best = 1;
  for (int turn = 0; turn < 5; ++turn) {
    const double before = processor_seconds();
    run(2, ":");
    best = std::min(best, processor_seconds() - before);
  }
  EXPECT_LT(best, 0.05);
}

TEST_F(Launcher, StoresWholeLinesPerRank) {
  const LaunchReport report =
      run(2, "echo out $RANK; echo err $RANK >&2; printf 'no end'; printf 'a\\rb\\n' >&2");
  EXPECT_EQ(report.exit_code, 0);
  for (const std::string rank : {"0", "1"}) {
    const std::string log = "\n" + file("logs/rank-0" + rank + ".log");
    for (const std::string& line :
         {"out " + rank, "err " + rank, std::string("no end"), std::string("b")})
      EXPECT_NE(log.find("\n" + line + "\n"), std::string::npos) << line << log;
  }
}

TEST_F(Launcher, PrefixesConsoleLinesAndPassesRankZeroOnWhenAsked) {
  for (const Console console : {Console::Prefixed, Console::RankZeroPlain}) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    LaunchSpec two = spec(2, "printf 'half '; sleep 0.1; echo line $RANK; printf 'bar\\r' >&2");
    two.logs.console = console;
    run_ranks(two);
    const std::string output = ::testing::internal::GetCapturedStdout();
    const std::string errors = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(output.find("[rank 1] half line 1\n"), std::string::npos) << output;
    EXPECT_EQ(output.find("[rank 0] ") != std::string::npos, console == Console::Prefixed)
        << output;
    EXPECT_EQ(errors.find("bar\r") != std::string::npos, console == Console::RankZeroPlain);
  }
}

TEST_F(Launcher, ManyLinesOfManyRanksAreNotMixedOrLost) {
  ::testing::internal::CaptureStdout();
  LaunchSpec twelve = spec(
      12,
      "i=0; while [ $i -lt 300 ]; do echo $RANK-$i-abcdefghijklmnopqrstuvwxyz; i=$((i+1)); done");
  twelve.logs.console = Console::Prefixed;
  EXPECT_EQ(run_ranks(twelve).exit_code, 0);
  std::istringstream output(::testing::internal::GetCapturedStdout());
  std::map<std::string, int> next;
  int lines = 0;
  for (std::string line; std::getline(output, line); ++lines) {
    const std::string rank = line.substr(6, line.find(']') - 6);
    EXPECT_EQ(line, "[rank " + rank + "] " + rank + "-" + std::to_string(next[rank]++) +
                        "-abcdefghijklmnopqrstuvwxyz");
  }
  EXPECT_EQ(lines, 12 * 300);
  EXPECT_TRUE(fs::exists(folder_ / "logs/rank-11.log"));
}

TEST_F(Launcher, FirstFailureEndsTheOthersAndIsReported) {
  const LaunchReport report = run(3,
                                  "echo $$ >> $HERE/pids; if [ $RANK = 1 ]; then sleep 0.3; echo "
                                  "the reason >&2; exit 7; fi; sleep 60");
  EXPECT_EQ(report.exit_code, 7);
  EXPECT_LT(seconds_, 2.3 * testing::slowdown());
  EXPECT_TRUE(all_gone("pids", milliseconds(0)));
  ASSERT_EQ(report.root_cause, 0);
  EXPECT_EQ(report.ends[0].rank, 1);
  const std::string text = failure_text(report);
  EXPECT_NE(text.find("  | the reason\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\nconvoy: rank 1 ended with exit code 7\n")) << text;
  const auto line = nlohmann::json::parse(failure_json(report));
  EXPECT_EQ(line["code"], 7);
  EXPECT_EQ(line["rank"], 1);
}

TEST_F(Launcher, RanksThatEndAlikeAfterTheFirstFailureAreOneLine) {
  const LaunchReport report = run(5,
                                  "[ $RANK = 2 ] && { sleep 0.2; exit 7; }; [ $RANK = 4 ] && trap "
                                  "'exit 9' TERM; [ $RANK -lt 2 ] && trap 'exit 8' TERM; "
                                  "sleep 60 & wait");
  const std::string text = failure_text(report);
  EXPECT_NE(text.find("ranks 0 and 1 ended with exit code 8 after rank 2 had failed\n"),
            std::string::npos)
      << text;
  // Rank 3 ended by the launcher's signal, as intended, so the text does not name it.
  EXPECT_EQ(text.find("rank 3"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 4 ended with exit code 9 after rank 2 had failed\n"), std::string::npos)
      << text;
}

TEST_F(Launcher, ReportCutsLongLinesAndShowsNoControlBytes) {
  const std::string text = failure_text(run(2,
                                            "[ $RANK = 1 ] && sleep 60; head -c 3000 /dev/zero | "
                                            "tr '\\0' x; printf '\\000\\007\\n'; exit 3"));
  EXPECT_LT(text.size(), 1200u);
  EXPECT_NE(text.find("xxx..."), std::string::npos) << text;
  for (const char byte : text) EXPECT_TRUE(byte == '\n' || static_cast<unsigned char>(byte) >= 32);
}

TEST_F(Launcher, RanksThatIgnoreTermAreKilledWithinTwoSeconds) {
  const LaunchReport report = run(
      2,
      "trap '' TERM; echo $$ >> $HERE/pids; if [ $RANK = 0 ]; then sleep 0.2; kill -SEGV $$; fi; "
      "sleep 60 & echo $! >> $HERE/pids; wait; sleep 60");
  EXPECT_EQ(report.exit_code, 128 + SIGSEGV);
  EXPECT_LT(seconds_, 2.3 * testing::slowdown());
  EXPECT_TRUE(all_gone("pids", milliseconds(100)));
  EXPECT_NE(failure_text(report).find("rank 0 was killed by signal 11"), std::string::npos);
}

// A rank that runs Convoy prints its error before it ends, so the launcher leaves these lines out.
TEST_F(Launcher, ARefusalIsSaidOnce) {
  const LaunchReport report = run(
      2,
      "[ $RANK = 1 ] && sleep 60; cat > $TORCHELASTIC_ERROR_FILE <<'END'\n"
      "{\"message\": {\"message\": \"tensor q is NaN\", \"extraInfo\": {\"timestamp\": \"1\"}},\n"
      " \"convoy\": {\"code\": 15, \"kind\": \"numeric\", \"rank\": null, \"step\": "
      "12}}\nEND\necho noise >&2; echo 'convoy: tensor q is NaN' >&2; "
      "echo '{\"code\":15,\"message\":\"tensor q is NaN\"}' >&2; exit 15");
  const std::string text = failure_text(report);
  EXPECT_NE(text.find("  | noise"), std::string::npos) << text;
  const size_t said = text.find("tensor q is NaN");
  ASSERT_NE(said, std::string::npos) << text;
  EXPECT_EQ(text.find("tensor q is NaN", said + 1), std::string::npos) << text;
}

TEST_F(Launcher, ErrorFileSpeaksForTheRank) {
  const LaunchReport report = run(
      2,
      "[ $RANK = 1 ] && sleep 60; echo noise >&2; cat > $TORCHELASTIC_ERROR_FILE <<'END'\n"
      "{\"message\": {\"message\": \"tensor q is NaN\", \"extraInfo\": {\"timestamp\": \"1\"}},\n"
      " \"convoy\": {\"code\": 15, \"kind\": \"numeric\", \"rank\": null, \"step\": "
      "12}}\nEND\nexit 15");
  EXPECT_EQ(report.exit_code, 15);
  EXPECT_TRUE(failure_text(report).ends_with("rank 0: tensor q is NaN\n")) << failure_text(report);
  const auto line = nlohmann::json::parse(failure_json(report));
  EXPECT_EQ(line["kind"], "numeric");
  EXPECT_EQ(line["step"], 12);
  EXPECT_EQ(line["rank"], 0);
  EXPECT_NE(file("logs/rank-00.log").find("tensor q is NaN"), std::string::npos);
}

TEST_F(Launcher, LostPeerIsNotTheRootCause) {
  // Rank 0 sees the broken connection and ends. Rank 1 ends only after the launcher has noticed
  // the end of rank 0.
  const LaunchReport report =
      run(2,
          "if [ $RANK = 0 ]; then echo $$ > $HERE/zero; while [ ! -e $HERE/one ]; do sleep 0.01; "
          "done; exit 13; fi; while [ ! -s $HERE/zero ]; do sleep 0.01; done; echo x > $HERE/one; "
          "while kill -0 $(cat $HERE/zero) 2>/dev/null; do sleep 0.01; done; exit 70");
  EXPECT_EQ(report.exit_code, 70);
  EXPECT_EQ(report.ends[static_cast<size_t>(report.root_cause)].rank, 1);
}

TEST_F(Launcher, LostPeerAloneIsTheCause) {
  EXPECT_EQ(run(2, "[ $RANK = 0 ] && exit 13; sleep 60").exit_code, 13);
  EXPECT_LT(seconds_, 10 * testing::slowdown());
}

TEST_F(Launcher, EarlyExitIsAFailure) {
  const LaunchReport report = run(2, "[ $RANK = 0 ] && exit 0; sleep 60");
  EXPECT_EQ(report.exit_code, 13);
  EXPECT_NE(failure_text(report).find("rank 0 ended with exit code 0 while other ranks"),
            std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(failure_json(report))["code"], 13);
}

TEST_F(Launcher, EarlyExitIsAllowedWhereAsked) {
  LaunchSpec two = spec(2, "[ $RANK = 0 ] && exit 0; sleep 0.8");
  two.early_exit_is_failure = false;
  EXPECT_EQ(run_ranks(two).exit_code, 0);
}

TEST_F(Launcher, GrandchildrenEndWithTheirRank) {
  run(1, "sleep 60 & echo $! > $HERE/pids");
  EXPECT_TRUE(all_gone("pids", milliseconds(500)));
  EXPECT_LT(seconds_, 2 * testing::slowdown());
}

TEST_F(Launcher, StoppedRankThatBeatsNoMoreIsOnlyAWarningForForeignPrograms) {
  LaunchSpec two = spec(2, "[ $RANK = 1 ] && { (sleep 1; kill -CONT $$) & kill -STOP $$; }; true");
  two.health.silent_after = milliseconds(300);
  two.health.interval = milliseconds(50);
  two.early_exit_wait = milliseconds(5'000);
  EXPECT_EQ(run_ranks(two).exit_code, 0);
}

TEST_F(Launcher, LocalRankMacroIsFilledIn) {
  LaunchSpec two = spec(2, "echo $1 > $HERE/macro.$RANK");
  two.program.insert(two.program.end(), {"sh", "--rank=${local_rank}/${local_rank}"});
  EXPECT_EQ(run_ranks(two).exit_code, 0);
  EXPECT_EQ(file("macro.1"), "--rank=1/1\n");
}

TEST_F(Launcher, RankSetupBindsCpusAndAddsVariables) {
  LaunchSpec one =
      spec(1, "grep Cpus_allowed_list /proc/self/status > $HERE/cpus; echo $MINE >> $HERE/cpus");
  one.ranks = {{{{"MINE", "yes"}}, {0}}};
  EXPECT_EQ(run_ranks(one).exit_code, 0);
  EXPECT_EQ(file("cpus"), "Cpus_allowed_list:\t0\nyes\n");
}

TEST_F(Launcher, ManyRanksStartAndEnd) { EXPECT_EQ(run(64, ":").exit_code, 0); }

TEST_F(Launcher, MemoryKillIsSeenByTheCounters) {
  const fs::path sys = folder_ / "sys/fs/cgroup/memory/job", proc = folder_ / "proc";
  fs::create_directories(sys);
  fs::create_directories(proc / "self");
  write_file_atomic(proc / "self/cgroup", "4:memory:/job\n0::/\n");
  write_file_atomic(proc / "vmstat", "nr_free 5\noom_kill 3\n");
  write_file_atomic(sys / "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  processes::MemoryKills kills(folder_ / "sys", proc);
  EXPECT_FALSE(kills.happened());
  write_file_atomic(proc / "vmstat", "nr_free 5\noom_kill 4\n");
  EXPECT_FALSE(kills.happened());  // the machine's counter: another job's process
  write_file_atomic(sys / "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  EXPECT_TRUE(kills.happened());
  EXPECT_FALSE(kills.happened());
  EXPECT_FALSE(processes::MemoryKills(folder_ / "none", folder_ / "none").happened());
  processes::MemoryKills on_the_machine(folder_ / "none", proc);
  write_file_atomic(proc / "vmstat", "nr_free 5\noom_kill 5\n");
  EXPECT_TRUE(on_the_machine.happened());
}

// Row 10 of the table of faults. The test needs a memory cgroup (v1) that it may create.
TEST_F(Launcher, RankBeyondTheMemoryLimitEndsWithTwelve) {
  const fs::path group = "/sys/fs/cgroup/memory/convoy-test-" + std::to_string(getpid());
  std::error_code failure;
  if (!fs::create_directory(group, failure)) GTEST_SKIP() << "memory cgroups cannot be made here";
  const pid_t launcher = fork();
  if (launcher == 0) {
    std::ofstream(group / "memory.limit_in_bytes") << (64 << 20);
    std::ofstream(group / "cgroup.procs") << getpid();
    const LaunchReport report = run_ranks(
        spec(2, "[ $RANK = 1 ] && exec dd if=/dev/zero of=/dev/null bs=200M count=1; sleep 60"));
    std::ofstream(folder_ / "report") << failure_text(report);
    _exit(report.exit_code);
  }
  int status = 0;
  waitpid(launcher, &status, 0);
  for (int turn = 0; turn < 100 && !fs::remove(group, failure); ++turn)
    std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(WEXITSTATUS(status), 12);
  EXPECT_NE(file("report").find("rank 1 was killed by the kernel because memory ran out"),
            std::string::npos)
      << file("report");
}

TEST(ReservedPort, AreDistinctAndFree) {
  std::vector<processes::ReservedPort> ports(50);
  std::set<int> numbers;
  for (const processes::ReservedPort& port : ports) {
    EXPECT_TRUE(processes::port_is_free(port.number()));
    numbers.insert(port.number());
  }
  EXPECT_EQ(numbers.size(), 50u);
}

TEST(ReservedPort, IsNeverTheDefaultOfTorchrun) {
  EXPECT_THROW(processes::ReservedPort(29500, 29500), IoError);
}

TEST_F(Launcher, ProgramThatCanNotStartIsNamed) {
  LaunchSpec missing = spec(2, "");
  missing.program = {"/nowhere/program"};
  try {
    run_ranks(missing);
    FAIL() << "expected an error";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("/nowhere/program"), std::string::npos);
  }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST_F(Launcher, ErrorFileRoundTrip) {
  const fs::path path = folder_ / "error.json";
  EXPECT_TRUE(processes::write_error_file(
      path, DataError("row is \xff bad", {.file = "a.jsonl", .line = 3})));
  const processes::ErrorFile found = processes::read_error_file(path);
  EXPECT_TRUE(found.sentence.starts_with("a.jsonl:3: row is ")) << found.sentence;
  EXPECT_EQ(nlohmann::json::parse(found.json_line)["code"], 10);
  EXPECT_FALSE(processes::write_error_file("/proc/nowhere/error.json", DataError("x")));
  EXPECT_TRUE(processes::read_error_file(folder_ / "none").sentence.empty());
  write_file_atomic(path, "{\"message\": [1]");
  EXPECT_TRUE(processes::read_error_file(path).sentence.empty());
}

}  // namespace
}  // namespace convoy::launch
