// SPDX-License-Identifier: Apache-2.0
//
// Watches real processes as ranks, with shorter time limits than the launcher's.
#include "convoy/launch/supervisor/health/health_watch.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>

#include "convoy/core/telemetry/ranks/flight_record_writer.h"
#include "load/slowdown.h"

namespace convoy::launch {
namespace {

using std::chrono::milliseconds;
using telemetry::FlightWriter;

// Time limit for notices that must come: look() returns as soon as they are there.
constexpr milliseconds kPatience{60'000};

constexpr HealthOptions kQuick{.silent_after = milliseconds(1000),
                               .slow_after = milliseconds(1000),
                               .stuck_after = milliseconds(500),
                               .core_file_limit = milliseconds(12'000),
                               .straggler_window = milliseconds(1000),
                               .interval = milliseconds(50)};

constexpr telemetry::Collective kBarrier{
    .group = "world", .operation = "barrier", .sequence = 4, .group_size = 2};

class HealthWatchOfTwo : public ::testing::Test {
 protected:
  ~HealthWatchOfTwo() override {
    for (int rank = 0; rank < 2; ++rank) end(rank);
  }

  void start(int rank, const std::function<void()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const std::string descriptor = std::to_string(pages_.descriptor(rank));
      ::setenv(telemetry::kFlightVariable, descriptor.c_str(), 1);
      body();
      ::_exit(0);
    }
    ::setpgid(child, child);
    pids_[rank] = child;
    watch_.started(rank, child);
  }
  void end(int rank) {
    if (pids_[rank] <= 0) return;
    watch_.ended(rank);
    ::kill(-pids_[rank], SIGKILL);
    ::waitpid(pids_[rank], nullptr, 0);
    pids_[rank] = -1;
  }
  void wait_for_beats(int rank) {
    while (pages_.of(rank).read(0).num_beats < 2) std::this_thread::sleep_for(milliseconds(10));
  }
  // Checks as the launcher's loop does, until `enough` notices came or `time` is over.
  std::vector<HealthNotice> look(milliseconds time, size_t enough = 1) {
    std::vector<HealthNotice> all;
    const auto until = HealthWatch::Clock::now() + time;
    while (HealthWatch::Clock::now() < until && all.size() < enough) {
      std::this_thread::sleep_until(watch_.next_deadline().value_or(until));
      for (HealthNotice& notice : watch_.check(HealthWatch::Clock::now()))
        all.push_back(std::move(notice));
    }
    return all;
  }

  FlightPages pages_{2, 6};
  HealthWatch watch_{pages_, kQuick};
  pid_t pids_[2] = {-1, -1};
};

void beat_on() {
  const FlightWriter writer = FlightWriter::attach();
  for (;;) ::pause();
}

TEST(HealthOptions, SilenceIsNamedWithinTenSeconds) {
  constexpr HealthOptions kInUse;
  // The last heartbeat may precede the stop by little, and a check may come just before the limit
  // is reached.
  EXPECT_LE(kInUse.silent_after + milliseconds(250) + 2 * kInUse.interval, milliseconds(10'000));
}

// Rank 1 is late at first, and then enters another collective than the one in which rank 0 waits.
TEST_F(HealthWatchOfTwo, RanksInDifferentCollectivesEndTheAttempt) {
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  start(0, [] {
    FlightWriter writer = FlightWriter::attach();
    writer.wait(writer.enter(kBarrier));
    for (;;) ::pause();
  });
  start(1, [&] {
    FlightWriter writer = FlightWriter::attach();
    char byte = 0;
    EXPECT_EQ(::read(go[0], &byte, 1), 1);
    telemetry::Collective other = kBarrier;
    other.operation = "all_reduce";
    writer.wait(writer.enter(other));
    for (;;) ::pause();
  });
  for (const int rank : {0, 1}) wait_for_beats(rank);
  const std::vector<HealthNotice> slow = look(kPatience);
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_EQ(slow[0].kind, HealthKind::Slow);
  EXPECT_EQ(::write(go[1], "x", 1), 1);
  const std::vector<HealthNotice> notices = look(kPatience, 2);
  ASSERT_EQ(notices.size(), 2U);
  for (const HealthNotice& notice : notices) EXPECT_EQ(notice.kind, HealthKind::Stuck);
  EXPECT_FALSE(notices[0].fatal);
  EXPECT_TRUE(notices[0].sentence.starts_with("ranks disagree about #4 on group world"))
      << notices[0].sentence;
  EXPECT_TRUE(notices[1].fatal);
  EXPECT_TRUE(notices[1].sentence.starts_with("ranks cannot go on: they have waited "))
      << notices[1].sentence;
  EXPECT_TRUE(look(milliseconds(1200)).empty());
  ::close(go[0]);
  ::close(go[1]);
}

TEST_F(HealthWatchOfTwo, StoppedRankIsNamedAndItsPeerIsNot) {
  start(0, beat_on);
  start(1, [] {
    FlightWriter writer = FlightWriter::attach();
    writer.set_phase("forward");
    for (;;) ::pause();
  });
  for (const int rank : {0, 1}) wait_for_beats(rank);
  EXPECT_TRUE(look(milliseconds(300)).empty());
  ::kill(pids_[1], SIGSTOP);
  const auto start = HealthWatch::Clock::now();
  const std::vector<HealthNotice> notices = look(kPatience);
  const auto seconds = std::chrono::duration<double>(HealthWatch::Clock::now() - start).count();
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0].kind, HealthKind::Silent);
  EXPECT_EQ(notices[0].rank, 7);
  EXPECT_TRUE(notices[0].fatal);
  const std::string words =
      "rank 7 (process " + std::to_string(pids_[1]) + ") is stopped (SIGSTOP): no heartbeat for ";
  EXPECT_TRUE(notices[0].sentence.starts_with(words)) << notices[0].sentence;
  EXPECT_TRUE(notices[0].sentence.ends_with("in phase 'forward'")) << notices[0].sentence;
  EXPECT_GT(seconds, 0.5);
  EXPECT_LT(seconds, 2.5 * testing::slowdown());
  EXPECT_TRUE(look(milliseconds(300)).empty());  // a silence is named only once
  ::kill(pids_[1], SIGCONT);
  const std::vector<HealthNotice> after = look(kPatience);
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0].kind, HealthKind::Recovered);
  EXPECT_FALSE(after[0].fatal);
}

TEST_F(HealthWatchOfTwo, ShortStopIsNoSilence) {
  start(0, beat_on);
  wait_for_beats(0);
  ::kill(pids_[0], SIGSTOP);
  EXPECT_TRUE(look(milliseconds(400)).empty());
  ::kill(pids_[0], SIGCONT);
  EXPECT_TRUE(look(milliseconds(800)).empty());
}

TEST_F(HealthWatchOfTwo, DeadOrEndedRankIsNotSilent) {
  start(0, beat_on);
  start(1, [] {
    { const FlightWriter writer = FlightWriter::attach(); }
    for (;;) ::pause();  // as a rank whose exit takes long
  });
  wait_for_beats(0);
  ::kill(pids_[0], SIGKILL);  // remains a zombie until the launcher reaps it
  EXPECT_TRUE(look(milliseconds(1500)).empty());
  end(0);
  end(1);
  EXPECT_FALSE(watch_.next_deadline().has_value());
}

TEST_F(HealthWatchOfTwo, ForeignProgramIsOnlyReportedWhenStopped) {
  start(0, [] {
    for (;;) ::pause();
  });
  EXPECT_TRUE(look(milliseconds(1500)).empty());
  ::kill(pids_[0], SIGSTOP);
  const std::vector<HealthNotice> notices = look(kPatience);
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0].kind, HealthKind::Stopped);
  EXPECT_FALSE(notices[0].fatal);
  ::kill(pids_[0], SIGCONT);
  const std::vector<HealthNotice> after = look(kPatience);
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0].kind, HealthKind::Recovered);
}

TEST_F(HealthWatchOfTwo, LauncherThatDidNotRunAccusesNobody) {
  start(0, beat_on);
  wait_for_beats(0);
  EXPECT_TRUE(look(milliseconds(200)).empty());
  // When a machine wakes from sleep, no rank has had a heartbeat for long, and the launcher may run
  // first.
  ::kill(pids_[0], SIGSTOP);
  const auto later = HealthWatch::Clock::now() + std::chrono::hours(1);
  EXPECT_TRUE(watch_.check(later).empty());
  EXPECT_TRUE(watch_.check(later + milliseconds(100)).empty());
  ::kill(pids_[0], SIGCONT);
}

TEST_F(HealthWatchOfTwo, ProgramInsideAScriptIsWatched) {
  start(0, [] {
    if (::fork() == 0) beat_on();
    for (;;) ::pause();
  });
  wait_for_beats(0);
  const auto inner = static_cast<pid_t>(pages_.of(0).read(0).pid);
  ASSERT_NE(inner, pids_[0]);
  ::kill(inner, SIGSTOP);
  const std::vector<HealthNotice> notices = look(kPatience);
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_TRUE(notices[0].fatal);
  EXPECT_NE(notices[0].sentence.find(std::to_string(inner) + ") is stopped"), std::string::npos);
}

TEST_F(HealthWatchOfTwo, SlowRankIsToldFromASilentOne) {
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  start(0, [&] {
    FlightWriter writer = FlightWriter::attach();
    const uint64_t number = writer.enter(kBarrier);
    writer.wait(number);
    char byte = 0;
    EXPECT_EQ(::read(go[0], &byte, 1), 1);
    writer.done(number);
    for (;;) ::pause();
  });
  start(1, [] {
    FlightWriter writer = FlightWriter::attach();
    writer.set_phase("data");
    for (std::atomic<int64_t> turn{0}; turn >= 0; ++turn) {
    }
  });
  for (const int rank : {0, 1}) wait_for_beats(rank);
  const std::vector<HealthNotice> notices = look(kPatience);
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0].kind, HealthKind::Slow);
  EXPECT_EQ(notices[0].rank, 7);
  EXPECT_FALSE(notices[0].fatal);
  EXPECT_TRUE(notices[0].sentence.starts_with("rank 7 is slow (it beats and uses "))
      << notices[0].sentence;
  for (const char* words : {" % of a processor): rank 7 never entered barrier #4 on group world",
                            "rank 6 has waited in it for ", "in phase 'data'"})
    EXPECT_NE(notices[0].sentence.find(words), std::string::npos) << notices[0].sentence;
  EXPECT_TRUE(look(milliseconds(300)).empty());  // once in each episode
  EXPECT_EQ(::write(go[1], "x", 1), 1);
  const std::vector<HealthNotice> after = look(kPatience);
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0].kind, HealthKind::Recovered);
  EXPECT_TRUE(after[0].sentence.starts_with("rank 7 came to barrier #4 on group world"))
      << after[0].sentence;
  ::close(go[0]);
  ::close(go[1]);
}

TEST_F(HealthWatchOfTwo, Row39RankThatHoldsTheOthersUpIsNamedOnce) {
  // Imitates a rank that has half the processor time, so the other waits for it in every step.
  const auto step = [](milliseconds compute, milliseconds wait) {
    FlightWriter writer = FlightWriter::attach();
    for (int64_t sequence = 0;; ++sequence) {
      std::this_thread::sleep_for(compute);
      const uint64_t number = writer.enter({.group = "world",
                                            .operation = "all_reduce",
                                            .sequence = sequence,
                                            .num_elements = 1,
                                            .group_size = 2});
      writer.wait(number);
      std::this_thread::sleep_for(wait);
      writer.done(number);
    }
  };
  start(0, [&] { step(milliseconds(10), milliseconds(10)); });
  start(1, [&] { step(milliseconds(20), milliseconds(0)); });
  const std::vector<HealthNotice> notices = look(kPatience);
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0].kind, HealthKind::Straggler);
  EXPECT_EQ(notices[0].rank, 7);
  EXPECT_FALSE(notices[0].fatal);
  EXPECT_TRUE(notices[0].sentence.starts_with("rank 7 holds the others up")) << notices[0].sentence;
  EXPECT_TRUE(look(milliseconds(1200)).empty());
}

}  // namespace
}  // namespace convoy::launch
