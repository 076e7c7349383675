// SPDX-License-Identifier: Apache-2.0
//
// Tests whole runs as processes: ends, signals, workers that cannot work, rows that end their
// worker, and the sharing of work.
#include <fmt/format.h>

#include <csignal>
#include <sstream>
#include <thread>

#include "process/probe_run.h"

namespace convoy::testing {
namespace {

class RowRuns : public ProbeTest {
 protected:
  // Waits until the run has workers, and then for `time`.
  static void let_work(ProbeRun& run, std::chrono::milliseconds time) {
    while (run.running() && run.workers().empty())
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(time);
  }
};

TEST_F(RowRuns, OutputIsTheSameForAnyNumberOfWorkers) {
  const std::vector<std::string> more = {"rows=300", "step_us=200"};
  const ProbeEnd one = run(words("one", 1, more));
  ASSERT_EQ(one.status, 0) << one.errors;
  EXPECT_EQ(one.report().at("rows"), 300);
  for (const int64_t workers : {2, 4}) {
    const std::string folder = fmt::format("{}", workers);
    const ProbeEnd end = run(words(folder, workers, more));
    ASSERT_EQ(end.status, 0) << end.errors;
    EXPECT_EQ(output(folder), output("one"));
    EXPECT_EQ(tokens_made(folder), tokens_made("one"));
  }
  // A finished run computes nothing when it is started again.
  const ProbeEnd again = run(words("one", 1, more));
  ASSERT_EQ(again.status, 0) << again.errors;
  EXPECT_EQ(again.report().at("rows"), 0);
}

TEST_F(RowRuns, AStopKeepsWhatIsFinished) {
  const std::vector<std::string> more = {"rows=400", "step_us=5000"};
  ASSERT_EQ(run(words("whole", 2, {"rows=400"})).status, 0);
  for (const int signal : {SIGTERM, SIGINT}) {
    const auto stopped = start(words("stopped", 2, more));
    let_work(*stopped, std::chrono::milliseconds(300));
    ::kill(stopped->pid(), signal);
    const ProbeEnd end = stopped->wait();
    EXPECT_EQ(end.status, 75) << end.errors;
  }
  ASSERT_EQ(run(words("stopped", 1, {"rows=400"})).status, 0);
  EXPECT_EQ(output("stopped"), output("whole"));
  // The texts in progress at the stop are computed again: 2 x 2 workers, with texts of at most 9
  // tokens.
  EXPECT_LE(tokens_made("stopped"), tokens_made("whole") + 2 * 2 * 16 * 2 * 9);
}

TEST_F(RowRuns, WorkersThatCanNotBeginEndTheRunWithTheirWords) {
  const ProbeEnd end = run(words("broken", 2, {"rows=10", "broken=1"}));
  EXPECT_EQ(end.status, 10);
  EXPECT_NE(end.errors.find("this worker is broken"), std::string::npos) << end.errors;
}

TEST_F(RowRuns, ARowThatTakesItsWorkersDownIsMarkedAndTheOthersFinish) {
  const ProbeEnd end = run(words("poisoned", 2, {"rows=60", "poison=21", "rows_in_flight=8"}));
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_GE(end.report().at("deaths").get<int64_t>(), 3);
  std::istringstream lines(output("poisoned"));
  int64_t index = 0;
  for (std::string line; std::getline(lines, line); ++index)
    EXPECT_TRUE(line.starts_with(fmt::format("{} {} ", index, index == 21 ? "engine_error" : "ok")))
        << line;
  EXPECT_EQ(index, 60);
}

TEST_F(RowRuns, ADeadWorkerIsReplacedAndNobodyWaits) {
  const auto going = start(words("run", 2, {"rows=1500", "step_us=1000"}));
  for (int kill = 0; kill < 3; ++kill) {
    let_work(*going, std::chrono::milliseconds(250));
    const std::vector<pid_t> workers = going->workers();
    if (!workers.empty()) ::kill(workers.front(), SIGKILL);
  }
  const ProbeEnd end = going->wait();
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_GE(end.report().at("deaths").get<int64_t>(), 1);
  EXPECT_LT(end.report().at("seconds").get<double>(), 50) << "a lease was waited for";
  ASSERT_EQ(run(words("whole", 1, {"rows=1500"})).status, 0);
  EXPECT_EQ(output("run"), output("whole"));
}

TEST_F(RowRuns, ASlowWorkerIsGivenLess) {
  const ProbeEnd end = run(words("slow", 2,
                                 {"rows=800", "step_us=4000", "slow_worker=1", "slow_factor=4",
                                  "judges=0", "rows_in_flight=16"}));
  ASSERT_EQ(end.status, 0) << end.errors;
  const int64_t fast = end.report().at("each").at("0"), slow = end.report().at("each").at("1");
  EXPECT_EQ(fast + slow, 800);
  EXPECT_GT(2 * fast, 3 * slow);
  EXPECT_GT(slow, 40);
}

TEST_F(RowRuns, FiftyThousandRowsKeepTheirOrderInBoundedMemory) {
  const ProbeEnd end = run(words("many", 2,
                                 {"rows=50000", "samples=1", "judges=0", "rows_in_flight=512",
                                  "batch=512", "max_tokens=1", "row_bytes=400"}));
  ASSERT_EQ(end.status, 0) << end.errors;
  const nlohmann::json report = end.report();
  fmt::print("{}\n", report.dump());
  EXPECT_LT(report.at("coordinator_kib").get<int64_t>(), 256 << 10);
  EXPECT_LT(report.at("largest_worker_kib").get<int64_t>(), 256 << 10);
  std::istringstream lines(output("many"));
  int64_t index = 0;
  for (std::string line; std::getline(lines, line); ++index)
    ASSERT_TRUE(
        line.starts_with(fmt::format("{} ok {{\"problem\":\"problem {}.", index, index % 1'000)));
  EXPECT_EQ(index, 50'000);
}

}  // namespace
}  // namespace convoy::testing
