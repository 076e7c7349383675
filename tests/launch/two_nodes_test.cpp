// SPDX-License-Identifier: Apache-2.0
//
// Stops a job of two nodes, which are two launchers on this machine. One or both of them get a
// signal.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <ostream>
#include <thread>

#include "launch/launch_process.h"

namespace convoy::testing {
namespace {

// Two launchers on this machine. When it is asked to stop, rank 0 leaves with 75 at once, and rank
// 1 needs a while to save.
class TwoNodes : public LaunchTest {
 protected:
  std::unique_ptr<LaunchProcess> start_node(int node, const std::string& script,
                                            std::map<std::string, std::string> variables = {}) {
    LaunchStart what = shell(1, script,
                             {"--nnodes", nodes_, "--node-rank", std::to_string(node),
                              "--rdzv-endpoint", "127.0.0.1:" + port_, "--rdzv-id", "two"});
    what.environment = std::move(variables);
    return start(what);
  }
  using Variables = std::map<std::string, std::string>;
  void start_both(const std::function<Variables(int node)>& variables = [](int) {
    return Variables();
  }) {
    node_0_ = start_node(
        0, "trap 'exit 75' TERM; echo $$ >> $HERE/pid.0; echo x >> $HERE/ready; " + kWait,
        variables(0));
    node_1_ = start_node(
        1,
        "trap 'sleep 1; echo saved >> $HERE/saved; exit 75' TERM; echo x >> $HERE/ready; " + kWait,
        variables(1));
    ASSERT_TRUE(wait_for_lines("ready", 2)) << node_0_->errors() << node_1_->errors();
  }
  bool rank_0_ended() const {
    return wait_until([&] { return !is_alive(numbers("pid.0").at(0)); }, milliseconds(3'000));
  }
  void expect_saved() {
    const LaunchEnd end_0 = node_0_->wait();
    const LaunchEnd end_1 = node_1_->wait();
    EXPECT_EQ(end_0.status, 75) << end_0.errors;
    EXPECT_EQ(end_1.status, 75) << end_1.errors;
    EXPECT_EQ(file("saved"), "saved\n");
  }

  const std::string port_ = std::to_string(20'000 + ::getpid() % 10'000);
  const char* nodes_ = "2";
  std::unique_ptr<LaunchProcess> node_0_, node_1_;
};

TEST_F(TwoNodes, L12_WhatRanksSayWhenTheyMakeWayForANewNodeIsNoFailure) {
  for (const int code : {128 + SIGTERM, 1}) {
    for (const char* name : {"saved", "worlds"}) std::filesystem::remove(path(name));
    // Of the present ranks, one needs a while to save and the other one leaves at once.
    const std::string script = fmt::format(
        "trap '[ $LOCAL_RANK = 1 ] && {{ sleep 1; echo saved >> $HERE/saved; }}; exit {}' TERM; "
        "echo $WORLD_SIZE >> $HERE/worlds; "
        "while [ $(grep -c 4 $HERE/worlds) -lt 4 ]; do sleep 0.05; done; trap '' TERM",
        code);
    const auto start_elastic = [&] {
      return start(shell(2, script,
                         {"--nnodes", "1:2", "--rdzv-endpoint", "127.0.0.1:" + port_, "--rdzv-id",
                          "grow", "--rdzv-conf", "last_call_timeout=1"}));
    };
    node_0_ = start_elastic();
    ASSERT_TRUE(wait_for_lines("worlds", 2)) << node_0_->errors();
    node_1_ = start_elastic();
    const LaunchEnd end_0 = node_0_->wait();
    const LaunchEnd end_1 = node_1_->wait();
    EXPECT_EQ(end_0.status, 0) << end_0.errors;
    EXPECT_EQ(end_1.status, 0) << end_1.errors;
    EXPECT_EQ(file("worlds"), "2\n2\n4\n4\n4\n4\n");
    EXPECT_EQ(file("saved"), "saved\n");
  }
}

TEST_F(TwoNodes, ReportOfEachLeadsWithTheLastLinesOfTheRankThatFailed) {
  node_0_ = start_node(0, "echo x >> $HERE/ready; " + kWait);
  node_1_ = start_node(1,
                       "echo x >> $HERE/ready; while [ $(wc -l < $HERE/ready) -lt 2 ]; do sleep "
                       "0.02; done; echo 'no such data' >&2; exit 6");
  for (LaunchProcess* const node : {node_0_.get(), node_1_.get()}) {
    const LaunchEnd end = node->wait();
    EXPECT_EQ(end.status, 6) << end.errors;
    const size_t report =
        end.errors.find("rank 1 failed first; its last lines:\n  | no such data\n");
    EXPECT_NE(report, std::string::npos) << end.errors;
    EXPECT_NE(end.errors.find("\nconvoy: rank 1 ", report), std::string::npos) << end.errors;
    const auto line = nlohmann::json::parse(end.last_line(), nullptr, false);
    ASSERT_TRUE(line.is_object()) << end.errors;
    EXPECT_EQ(line["rank"], 1);
  }
}

TEST_F(TwoNodes, EachNamesTheRankOfTheOtherThatDidNotEnterACollective) {
  const std::string probe =
      fmt::format("{}/launch_collective_probe ", std::getenv("CONVOY_BIN_DIR"));
  node_0_ = start_node(0, "exec " + probe + "waits");
  node_1_ = start_node(1, "exec " + probe + "idles");
  for (LaunchProcess* const node : {node_0_.get(), node_1_.get()}) {
    const LaunchEnd end = node->wait();
    EXPECT_EQ(end.status, 6) << end.errors;
    EXPECT_NE(end.errors.find("rank 1 never entered all_reduce #1 on group world"),
              std::string::npos)
        << end.errors;
  }
}

TEST_F(TwoNodes, L06_StopAfterTheOwnRanksHaveEndedWaitsForTheOthersToSave) {
  // A job system signals every process, so a rank may have ended before its launcher gets the
  // signal.
  start_both();
  ::kill(numbers("pid.0").at(0), SIGTERM);
  ASSERT_TRUE(rank_0_ended());
  std::this_thread::sleep_for(milliseconds(100));
  node_0_->signal(SIGTERM);
  expect_saved();
}

TEST_F(TwoNodes, L06_RepeatedStopOfSlurmWaitsForTheOthersToSave) {
  start_both([](int node) -> Variables {
    const std::string number = std::to_string(node);
    return {{"SLURM_JOB_ID", "7"},  {"SLURM_STEP_ID", "0"},           {"SLURM_NTASKS", "2"},
            {"SLURM_NNODES", "2"},  {"SLURM_PROCID", number},         {"SLURM_NODEID", number},
            {"SLURM_LOCALID", "0"}, {"SLURM_TASKS_PER_NODE", "1(x2)"}};
  });
  node_0_->signal(SIGTERM);
  ASSERT_TRUE(rank_0_ended());
  node_0_->signal(SIGTERM);
  expect_saved();
}

TEST_F(TwoNodes, L06_SecondStopWhileTheOthersSaveIsAHurry) {
  start_both();
  node_0_->signal(SIGTERM);
  ASSERT_TRUE(rank_0_ended());
  std::this_thread::sleep_for(milliseconds(100));
  node_0_->signal(SIGTERM);
  EXPECT_EQ(node_0_->wait(milliseconds(1'500)).status, 128 + SIGTERM);
  EXPECT_FALSE(node_1_->wait(milliseconds(5'000)).timed_out);
}

TEST_F(TwoNodes, L18_NodeWhoseClockIsOffIsNamedOnceAndTheJobGoesOn) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "no library may come before that of the sanitizer";
#endif
  const std::string script =
      "echo x >> $HERE/ready; while [ ! -e $HERE/done ]; do sleep 0.02; done";
  node_0_ = start_node(0, script);
  node_1_ = start_node(
      1, script,
      {{"LD_PRELOAD", fmt::format("{}/libskewed_clock.so", std::getenv("CONVOY_BIN_DIR"))},
       {"CLOCK_AHEAD_S", "-5400"}});
  ASSERT_TRUE(wait_for_lines("ready", 2)) << node_0_->errors() << node_1_->errors();
  std::this_thread::sleep_for(milliseconds(2'500));  // several rounds of clock questions
  write("done", "x");
  const LaunchEnd end = node_0_->wait();
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_EQ(node_1_->wait().status, 0) << node_1_->errors();
  const size_t at = end.errors.find("warning: the clock of node 1 ");
  ASSERT_NE(at, std::string::npos) << end.errors;
  EXPECT_EQ(end.errors.find("the clock of", at + 15), std::string::npos) << end.errors;
  EXPECT_NE(end.errors.find(" behind this host's", at), std::string::npos) << end.errors;
  EXPECT_NE(end.errors.find("times in logs will not match", at), std::string::npos) << end.errors;
}

struct UserSignalCase {
  const char* name;
  int fast_node;            // leaves at once; the other node needs a second
  std::vector<int> told;    // the launchers that get USR1, in order
  const char* nodes = "2";  // --nnodes
};

class UserSignalOfTwoNodes : public TwoNodes, public ::testing::WithParamInterface<UserSignalCase> {
 protected:
  // Imitates a program for SLURM's --signal=USR1, which handles only that signal. Any other signal
  // ends it in the middle of a save.
  void start_savers() {
    nodes_ = GetParam().nodes;
    for (const int node : {0, 1})
      (node == 0 ? node_0_ : node_1_) = start_node(
          node, fmt::format("trap 'echo got >> $HERE/got; {}echo saved >> $HERE/saved; exit 75' "
                            "USR1; echo x >> $HERE/ready; {}",
                            node == GetParam().fast_node ? "" : "sleep 1; ", kWait));
    ASSERT_TRUE(wait_for_lines("ready", 2)) << node_0_->errors() << node_1_->errors();
  }
};

TEST_P(UserSignalOfTwoNodes, L07_BothSaveAndLeaveAndNobodyIsSaidToHaveFailed) {
  start_savers();
  for (const int node : GetParam().told) (node == 0 ? node_0_ : node_1_)->signal(SIGUSR1);
  for (LaunchProcess* const node : {node_0_.get(), node_1_.get()}) {
    const LaunchEnd end = node->wait();
    EXPECT_EQ(end.status, 75) << end.errors;
    EXPECT_EQ(end.errors.find("fail"), std::string::npos) << end.errors;
    EXPECT_EQ(end.errors.find("\"code\""), std::string::npos) << end.errors;
  }
  EXPECT_EQ(file("got"), "got\ngot\n");
  EXPECT_EQ(file("saved"), "saved\nsaved\n");
  EXPECT_TRUE(nothing_left());
}

const UserSignalCase kUserSignalCases[] = {
    {"BothFirstIsFast", 0, {0, 1}},
    {"BothSecondIsFast", 1, {0, 1}},
    {"BothBackwardsFirstIsFast", 0, {1, 0}},
    {"BothBackwardsSecondIsFast", 1, {1, 0}},
    {"OnlyTheFirst", 0, {0}},
    {"OnlyTheFirstWhichIsSlow", 1, {0}},
    {"OnlyTheSecond", 1, {1}},
    {"OnlyTheSecondWhichIsSlow", 0, {1}},
    {"ElasticBothFirstIsFast", 0, {1, 0}, "1:2"},
    {"ElasticBothSecondIsFast", 1, {0, 1}, "1:2"},
};
void PrintTo(const UserSignalCase& one, std::ostream* out) { *out << one.name; }
INSTANTIATE_TEST_SUITE_P(TwoNodes, UserSignalOfTwoNodes, ::testing::ValuesIn(kUserSignalCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(TwoNodes, L07_UserSignalThatNobodyLeavesForStaysOnItsNode) {
  for (const int node : {0, 1})
    (node == 0 ? node_0_ : node_1_) = start_node(
        node, fmt::format("trap 'echo {0} >> $HERE/got' USR1; trap 'exit 75' TERM; echo x "
                          ">> $HERE/ready; {1}",
                          node, kWait));
  ASSERT_TRUE(wait_for_lines("ready", 2)) << node_0_->errors() << node_1_->errors();
  node_1_->signal(SIGUSR1);
  ASSERT_TRUE(wait_for_lines("got", 1));
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_TRUE(node_0_->running() && node_1_->running());
  EXPECT_EQ(file("got"), "1\n");
  node_0_->signal(SIGTERM);
  for (LaunchProcess* const node : {node_0_.get(), node_1_.get()})
    EXPECT_EQ(node->wait().status, 75) << node->errors();
}

// SLURM sends USR1 before the time limit and TERM at the limit. Ranks that leave at USR1 do not
// decide for the others.
TEST_F(TwoNodes, L07_StopAfterAUserSignalReachesRanksThatDidNotLeaveForIt) {
  node_0_ = start_node(0, "trap 'exit 75' USR1; echo x >> $HERE/ready; " + kWait);
  node_1_ = start_node(1, "trap : USR1; trap 'exit 75' TERM; echo x >> $HERE/ready; " + kWait);
  ASSERT_TRUE(wait_for_lines("ready", 2)) << node_0_->errors() << node_1_->errors();
  node_0_->signal(SIGUSR1);
  std::this_thread::sleep_for(milliseconds(400));
  EXPECT_TRUE(node_1_->running());
  node_1_->signal(SIGTERM);
  EXPECT_EQ(node_1_->wait(milliseconds(5'000)).status, 75) << node_1_->errors();
  EXPECT_EQ(node_0_->wait(milliseconds(5'000)).status, 75) << node_0_->errors();
}

}  // namespace
}  // namespace convoy::testing
