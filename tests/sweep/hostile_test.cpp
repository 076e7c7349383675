// SPDX-License-Identifier: Apache-2.0
//
// Workers that crash or stop, a store that vanishes, absurd numbers: each ends as promised, none as a number.
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "sweep/sweep_process.h"

namespace convoy::testing {
namespace {

using nlohmann::json;

class SweepHostile : public SweepTest {
 protected:
  // Some seconds of guesses on any machine.
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
      {"run", "--grid", "a=1,1", "--", "echo"}};
  for (const auto& words : refused) {
    const SweepEnd end = run(words);
    EXPECT_EQ(end.status, 2) << words[1] << " " << words[2] << end.errors;
    EXPECT_TRUE(end.output.empty()) << end.output;
    EXPECT_FALSE(std::filesystem::exists(path("results/sweep.db"))) << words[1] << " " << words[2];
    EXPECT_EQ(json::parse(end.last_line())["code"], 2) << end.errors;
  }
}

}  // namespace
}  // namespace convoy::testing
