// SPDX-License-Identifier: Apache-2.0
//
// Runs ranks that stop, skip, crash, leave or are slow under the launcher, and tests the named
// rank, the message and the exit code. The ranks are this same program. The rows and L numbers are
// listed in docs/explanation/failure-modes.md.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/telemetry/ranks/flight_record_writer.h"
#include "convoy/launch/supervisor/launcher.h"
#include "convoy/machine/processes/error_file.h"
#include "convoy/train/comm/group.h"
#include "files/temporary_folder.h"
#include "load/slowdown.h"

namespace convoy::testing {
namespace {

using std::chrono::milliseconds;

struct Rank {
  explicit Rank(std::chrono::seconds timeout)
      : group(comm::join_group(comm::read_rank_environment(), timeout, &flight)) {}

  telemetry::FlightWriter flight = telemetry::FlightWriter::attach();
  std::unique_ptr<comm::Group> group;

  int number() const { return group->rank(); }
  void reduce(int64_t num_elements) {
    at::Tensor values = at::ones({num_elements});
    group->all_reduce_sum(values);
  }
};

// Runs `body` and ends as the main() of convoy-worker ends.
void run_as_rank(void (*body)(Rank&), int timeout_s) {
  int code = 0;
  try {
    Rank rank{std::chrono::seconds(timeout_s)};
    body(rank);
  } catch (const Error& error) {
    code = static_cast<int>(error.code());
    processes::write_error_file(std::getenv("TORCHELASTIC_ERROR_FILE"), error);
  }
  std::_Exit(code);
}

#define RANK(name, timeout_s)                                              \
  static void rank_##name(Rank& rank);                                     \
  TEST(RankBody, DISABLED_##name) { run_as_rank(rank_##name, timeout_s); } \
  static void rank_##name(Rank& rank)

class SilentPeers : public ::testing::Test {
 protected:
  launch::LaunchSpec spec(int num_ranks, const std::string& body) const {
    launch::LaunchSpec made;
    made.program = {"/proc/self/exe", "--gtest_filter=RankBody.DISABLED_" + body,
                    "--gtest_also_run_disabled_tests"};
    made.job.num_local_ranks = made.job.world_size = num_ranks;
    made.environment = {{"OMP_NUM_THREADS", "1"}};
    made.logs.console = launch::Console::Silent;
    made.flight_folder = folder_.path();
    return made;
  }
  void run(const launch::LaunchSpec& spec) {
    ::testing::internal::CaptureStderr();
    const auto start = std::chrono::steady_clock::now();
    report_ = launch::run_ranks(spec);
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    warnings_ = ::testing::internal::GetCapturedStderr();
    text_ = launch::failure_text(report_);
    json_ = nlohmann::json::parse(launch::failure_json(report_), nullptr, false);
  }
  void expect_in(const std::string& text, const std::string& words) const {
    EXPECT_NE(text.find(words), std::string::npos) << "wanted: " << words << "\nfound: " << text;
  }

  TemporaryFolder folder_;
  launch::LaunchReport report_;
  double seconds_ = 0;
  std::string warnings_, text_;
  nlohmann::json json_;
};

RANK(Stops, 60) {
  rank.reduce(1000);
  rank.flight.set_step(6);
  if (rank.number() == 2) ::raise(SIGSTOP);
  rank.flight.set_phase("backward");
  rank.reduce(1 << 20);
}
TEST_F(SilentPeers, Row4StoppedRankIsNamedWithinTenSeconds) {
  run(spec(3, "Stops"));
  EXPECT_EQ(report_.exit_code, 13);
  EXPECT_LT(seconds_, 12 * testing::slowdown());  // ten seconds, and time to start and to end
  expect_in(text_, "is stopped (SIGSTOP): no heartbeat for ");
  expect_in(text_,
            "rank 2 never entered all_reduce #2 on group world (float32, 1,048,576 elements, "
            "4.0 MiB); ranks 0 and 1 have waited in it for ");
  expect_in(text_, "rank 2's last: all_reduce #1 on group world, done ");
  EXPECT_EQ(json_["rank"], 2);
  EXPECT_EQ(json_["code"], 13);
  EXPECT_EQ(json_["step"], 7);
  EXPECT_EQ(text_.find("rank 2 was killed"), std::string::npos) << text_;
  EXPECT_EQ(json_["collective"]["kind"], "missing");
  EXPECT_EQ(json_["collective"]["ranks"], nlohmann::json({2}));
  EXPECT_EQ(json_["collective"]["sequence"], 2);
  for (const char* name : {"flight-0.json", "flight-1.json", "flight-2.json"})
    EXPECT_TRUE(std::filesystem::exists(folder_.path() / name)) << name;
}

RANK(Skips, 4) {
  rank.reduce(1000);
  if (rank.number() != 1) rank.group->barrier();
  rank.reduce(77);
}
TEST_F(SilentPeers, L13SkippedCollectiveIsNamed) {
  launch::LaunchSpec three = spec(3, "Skips");
  three.health.slow_after = milliseconds(1'000);
  run(three);
  EXPECT_EQ(report_.exit_code, 13);  // Gloo's timeout; the warning came earlier
  expect_in(warnings_, "ranks disagree about #2 on group world: rank 1 entered all_reduce");
  expect_in(text_,
            "ranks disagree about #2 on group world: rank 1 entered all_reduce (float32, 77 "
            "elements, 308 B), ranks 0 and 2 entered barrier");
}

RANK(SkipsAndWaits, 1800) {
  rank.reduce(1000);
  if (rank.number() != 1) rank.group->barrier();
  rank.reduce(77);
}
TEST_F(SilentPeers, RanksThatAreOneCollectiveApartEndWithoutTheirTimeLimit) {
  launch::LaunchSpec three = spec(3, "SkipsAndWaits");
  three.health.slow_after = milliseconds(1'000);
  three.health.stuck_after = milliseconds(1'000);
  run(three);
  EXPECT_EQ(report_.exit_code, 13);
  expect_in(warnings_, "ranks disagree about #2 on group world: rank 1 entered all_reduce");
  expect_in(text_, "ranks cannot go on: they have waited ");
  expect_in(text_, "ranks disagree about #2 on group world");
  EXPECT_EQ(json_["kind"], "comm");
  EXPECT_EQ(json_["collective"]["kind"], "differs");
}

RANK(Throws, 60) {
  rank.reduce(1000);
  if (rank.number() == 1) throw NumericError("loss is NaN at step 3");
  rank.reduce(1000);
}
TEST_F(SilentPeers, Row7FirstFailingRankIsLastNotItsPeersNoise) {
  run(spec(3, "Throws"));
  EXPECT_EQ(report_.exit_code, 15);
  EXPECT_TRUE(text_.ends_with("rank 1: loss is NaN at step 3\n")) << text_;
  EXPECT_EQ(json_["kind"], "numeric");
  EXPECT_EQ(json_["rank"], 1);
}

RANK(Crashes, 60) {
  rank.reduce(1000);
  if (rank.number() == 1) ::raise(SIGSEGV);
  rank.reduce(1000);
}
TEST_F(SilentPeers, Row7SegmentationFaultIsNamedAndTheVerdictSaysWhere) {
  run(spec(3, "Crashes"));
  EXPECT_EQ(report_.exit_code, 128 + SIGSEGV);
  expect_in(text_, "rank 1 was killed by signal 11");
  expect_in(text_, "never entered all_reduce #2 on group world");
}

RANK(LeavesEarly, 60) {
  rank.reduce(1000);
  if (rank.number() == 0) return;
  std::this_thread::sleep_for(milliseconds(500));  // so that the launcher sees the end first
  rank.reduce(1000);
}
TEST_F(SilentPeers, Row8RankThatExitsWithZeroEarlyIsAFailure) {
  run(spec(2, "LeavesEarly"));
  EXPECT_EQ(report_.exit_code, 13);
  expect_in(text_, "rank 0 ended and never entered all_reduce #2 on group world");
}

RANK(Dawdles, 60) {
  rank.reduce(1000);
  rank.flight.set_phase("data");
  if (rank.number() == 1) std::this_thread::sleep_for(milliseconds(2'500));
  rank.reduce(1000);
  std::this_thread::sleep_for(milliseconds(1'200));  // the launcher checks twice a second
}
TEST_F(SilentPeers, L14SlowRankIsToldFromADeadOneAndTheJobGoesOn) {
  launch::LaunchSpec two = spec(2, "Dawdles");
  two.health.slow_after = milliseconds(1'000);
  run(two);
  EXPECT_EQ(report_.exit_code, 0) << text_;
  expect_in(warnings_, "rank 1 is slow (it beats and uses ");
  expect_in(warnings_, " % of a processor): rank 1 never entered all_reduce #2 on group world");
  expect_in(warnings_, "rank 1 came to all_reduce #2 on group world: the others had waited ");
}

RANK(ComesLate, 60) { rank.reduce(1); }
TEST_F(SilentPeers, StartThatTakesLongIsNoSilence) {
  launch::LaunchSpec two = spec(2, "ComesLate");
  two.program = {"/bin/sh",      "-c",           "[ $RANK = 1 ] && sleep 2; exec \"$0\" \"$@\"",
                 two.program[0], two.program[1], two.program[2]};
  two.program[3] = std::filesystem::read_symlink("/proc/self/exe");
  two.health.silent_after = milliseconds(1'000);
  run(two);
  EXPECT_EQ(report_.exit_code, 0) << text_;
  EXPECT_EQ(warnings_, "");
}

}  // namespace
}  // namespace convoy::testing
