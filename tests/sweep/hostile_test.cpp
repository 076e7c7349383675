// SPDX-License-Identifier: Apache-2.0
//
// Tests workers that crash or stop, a store that vanishes, and absurd numbers. Each sweep ends with
// the right error and never with a wrong result.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "sweep/sweep_process.h"

namespace convoy::testing {
namespace {

using nlohmann::json;

class SweepHostile : public SweepTest {
 protected:
  // Starts a sweep whose guesses take some seconds on any machine.
  std::unique_ptr<SweepProcess> start_long(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"ssm",   "--num-seeds", "2", "--student-dims",    "40",
                                      "--gnc", "--workers",   "2", "--gnc-num-samples", "40000000"};
    words.insert(words.end(), more.begin(), more.end());
    auto sweep = start(words);
    while (sweep->workers().size() < 2 && sweep->running()) ::usleep(5'000);
    ::usleep(600'000);
    return sweep;
  }
};

TEST_F(SweepHostile, AWorkerThatCrashesCostsATry) {
  auto sweep = start_long({"--json"});
  const std::vector<pid_t> workers = sweep->workers();
  ASSERT_FALSE(workers.empty());
  ::kill(workers.front(), SIGSEGV);
  const SweepEnd end = sweep->wait();
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_NE(end.errors.find("SIGSEGV"), std::string::npos) << end.errors;
  for (const json& row : json::parse(end.output)) EXPECT_EQ(row["guesses"], 40'000'000);
}

TEST_F(SweepHostile, CommandLinesOfWorkersDoNotHoldTheStore) {
  auto sweep = start_long();
  const std::vector<pid_t> workers = sweep->workers();
  ASSERT_FALSE(workers.empty());
  // /proc gives the file a size of 0 bytes, so it is read as a stream.
  std::ifstream file(fmt::format("/proc/{}/cmdline", workers.front()));
  const std::string command{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(command.find("sweep-worker"), std::string::npos);
  EXPECT_EQ(command.find(".db"), std::string::npos) << command;  // a URL may hold a password
  ::kill(sweep->pid(), SIGINT);
  EXPECT_EQ(sweep->wait().status, 75);
}

TEST_F(SweepHostile, ARefusedSeedLeavesTheStoreAsItWas) {
  ASSERT_EQ(
      run({"ssm", "--num-seeds", "1", "--student-dims", "5", "--gnc-num-samples", "1000"}).status,
      0);
  const std::string list = run({"show", "--list"}).output;
  for (const char* seed : {"-1", "4294967296"})
    EXPECT_EQ(run({"ssm", "--seeds", seed, "--student-dims", "5"}).status, 2);
  EXPECT_EQ(run({"show", "--list"}).output, list);
  EXPECT_EQ(run({"show", "--name", "ssm"}).status, 0);
  EXPECT_EQ(run({"show", "--name", "ssm@no-such-version"}).status, 2);
}

TEST_F(SweepHostile, AWorkerThatIsStoppedIsReplaced) {
  auto sweep = start_long({"--json", "--lease", "2"});
  const std::vector<pid_t> workers = sweep->workers();
  ASSERT_EQ(workers.size(), 2u);
  for (const pid_t worker : workers) ::kill(worker, SIGSTOP);
  const SweepEnd end = sweep->wait();
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_NE(end.errors.find("was stopped"), std::string::npos) << end.errors;
  for (const json& row : json::parse(end.output)) EXPECT_EQ(row["guesses"], 40'000'000);
}

TEST_F(SweepHostile, ARunnerThatIsStoppedAndContinuedGoesOn) {
  auto sweep = start_long({"--lease", "2"});
  ::kill(sweep->pid(), SIGSTOP);
  ::usleep(3'000'000);
  ::kill(sweep->pid(), SIGCONT);
  const SweepEnd end = sweep->wait();
  EXPECT_EQ(end.status, 0) << end.errors;
}

TEST_F(SweepHostile, AStoreThatVanishesEndsTheRun) {
  auto sweep = start_long();
  std::filesystem::remove(path("results/sweep.db"));
  const SweepEnd end = sweep->wait();
  EXPECT_EQ(end.status, 12) << end.errors;
  EXPECT_NE(end.errors.find("moved or deleted"), std::string::npos) << end.errors;
  EXPECT_TRUE(end.output.empty()) << end.output;
}

TEST_F(SweepHostile, AWorkerThatEatsAllMemoryFailsItsCellOnly) {
  write("program.sh",
        "ulimit -v 200000\ncase $1 in\n  big) python3 -c 'x = bytearray(10**9)' ;;\nesac\n"
        "test $? = 0 && echo '{\"loss\": 1}'\n");
  const SweepEnd end = run({"run", "--grid", "size=small,big", "--result", "loss", "--max-attempts",
                            "1", "--json", "--", "sh", "program.sh", "{size}"});
  EXPECT_EQ(end.status, 15) << end.errors;
  for (const json& row : json::parse(end.output)) {
    const bool small = row["size"] == "small";
    EXPECT_EQ(row["state"], small ? "value" : "failed") << row.dump();
    EXPECT_EQ(row["value"].is_null(), !small);
  }
}

TEST_F(SweepHostile, AbsurdNumbersAreRefusedBeforeAnyWork) {
  const std::vector<std::vector<std::string>> refused = {
      {"ssm", "--num-seeds", "1000000000000"},
      {"ssm", "--seeds", "1", "1"},
      {"ssm", "--student-dims", "4", "4"},
      {"ssm", "--student-dims", "0"},
      {"ssm", "--student-dims", "5000000000"},
      {"ssm", "--gnc-num-samples", "0"},
      {"ssm", "--eps-train", "nan"},
      {"ssm", "--workers", "100000"},
      {"run", "--num-seeds", "99999999999", "--", "echo"},
      {"run", "--seeds", "1", "1", "--", "echo"},
      {"run", "--grid", "a=", "--", "echo"},
      {"run", "--grid", "a", "--", "echo"},
      {"run", "--grid", "a=1,1", "--", "echo"},
      {"run", "--grid", "a=1,2,1.0", "--", "echo"},
      {"run", "--grid", "a=0.1,1e-1", "--", "echo"},
      {"mf", "--num-seeds", "10000001", "--widths", "5"},
      {"mf", "--seeds", "1", "1"}};
  for (const auto& words : refused) {
    const SweepEnd end = run(words);
    EXPECT_EQ(end.status, 2) << words[1] << " " << words[2] << end.errors;
    EXPECT_TRUE(end.output.empty()) << end.output;
    EXPECT_FALSE(std::filesystem::exists(path("results/sweep.db"))) << words[1] << " " << words[2];
    EXPECT_EQ(json::parse(end.last_line())["code"], 2) << end.errors;
  }
}

TEST_F(SweepHostile, TheCountOfTooManyCellsIsTheirCount) {
  const SweepEnd end = run({"ssm", "--num-seeds", "10000001", "--student-dims", "5"});
  EXPECT_EQ(end.status, 2);
  EXPECT_NE(end.errors.find("wanted 10000000 cells at most, found 10000001"), std::string::npos)
      << end.errors;
}

}  // namespace
}  // namespace convoy::testing
