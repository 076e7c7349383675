// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/health/file_timers.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "convoy/core/base/error.h"
#include "convoy/launch/supervisor/health/timer_watch.h"

namespace convoy::launch {
namespace {

std::string line(pid_t pid, const std::string& scope, const std::string& expiration, int signal) {
  return fmt::format(
      "{{\"version\": 1, \"pid\": {}, \"scope_id\": \"{}\", \"expiration_time\": {}, "
      "\"signal\": {}}}\n",
      pid, scope, expiration, signal);
}

TEST(FileTimers, ExpireUnlessReleased) {
  FileTimers timers;
  timers.take(line(7, "step", "100.5", 9));
  timers.take(line(8, "step", "100", 9));
  EXPECT_EQ(timers.next(), 100.0);
  EXPECT_TRUE(timers.expired(99.9).empty());
  timers.take(line(8, "step", "-1", 0));
  EXPECT_EQ(timers.next(), 100.5);
  const std::vector<TimerExpiry> expired = timers.expired(101);
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(expired[0].pid, 7);
  EXPECT_EQ(expired[0].scope, "step");
  EXPECT_EQ(expired[0].signal, 9);
  EXPECT_DOUBLE_EQ(expired[0].late_seconds, 0.5);
  EXPECT_FALSE(timers.next().has_value());
}

TEST(FileTimers, AreSetAnewByTheSameScope) {
  FileTimers timers;
  timers.take(line(7, "step", "100", 9) + line(7, "step", "200", 9));
  EXPECT_TRUE(timers.expired(150).empty());
  EXPECT_EQ(timers.expired(200).size(), 1U);
}

TEST(FileTimers, TheFirstOfAProcessThatNamesASignalCounts) {
  FileTimers timers;
  timers.take(line(7, "c", "3", 15) + line(7, "a", "1", 0) + line(7, "b", "2", 9) +
              line(7, "later", "90", 9));
  const std::vector<TimerExpiry> expired = timers.expired(10);
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(expired[0].scope, "b");
  EXPECT_EQ(expired[0].signal, 9);
  EXPECT_FALSE(timers.next().has_value()) << "a process that is to end needs no timers";
  timers.take(line(7, "a", "1", -1));
  EXPECT_EQ(timers.expired(10).at(0).signal, 0);
}

TEST(FileTimers, LinesMayComeInPiecesAndDamagedOnesAreDropped) {
  FileTimers timers;
  const std::string whole = line(7, "step\\n\\u001b", "1", 9);
  for (const char byte : whole) timers.take({&byte, 1});
  EXPECT_FALSE(timers.damaged_line().has_value());
  for (const std::string damaged :
       {"no json", "[1]", "{\"pid\": 7}", "{\"pid\": -1, \"scope_id\": \"a\", \"signal\": 9}",
        "{\"pid\":7,\"scope_id\":\"a\",\"expiration_time\":1,\"signal\":900}",
        "{\"pid\":7,\"scope_id\":\"a\",\"expiration_time\":\"1\",\"signal\":9}"}) {
    timers.take(damaged + "\n");
    EXPECT_EQ(timers.damaged_line().value_or(""), damaged);
  }
  timers.take(std::string(100'000, 'x'));
  EXPECT_LT(timers.damaged_line().value_or("").size(), 300U);
  const std::vector<TimerExpiry> expired = timers.expired(10);
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(expired[0].scope, "step??");
}

class TimerWatchTest : public ::testing::Test {
 protected:
  TimerWatchTest() {
    std::string name = (std::filesystem::temp_directory_path() / "convoy-test-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~TimerWatchTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
  int64_t now_ns_ = 1'000'000'000'000;
};

TEST_F(TimerWatchTest, ReadsItsPipeAndTakesItAway) {
  const std::filesystem::path path = folder_ / "timers";
  {
    TimerWatch watch(path, [this] { return now_ns_; });
    EXPECT_FALSE(watch.next_deadline().has_value());
    EXPECT_TRUE(watch.check().empty());
    std::ofstream(path) << line(7, "step", "1000.25", 9);
    EXPECT_TRUE(watch.check().empty());
    const auto left = watch.next_deadline().value() - TimerWatch::Clock::now();
    EXPECT_LT(left, std::chrono::milliseconds(255));
    EXPECT_GT(left, std::chrono::milliseconds(200));
    now_ns_ += 300'000'000;
    EXPECT_EQ(watch.check().size(), 1U);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(TimerWatchTest, ReplacesAPipeThatWasLeftAndNothingElse) {
  const std::filesystem::path path = folder_ / "timers";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_NO_THROW(TimerWatch watch(path));
  std::ofstream(path) << "mine";
  EXPECT_THROW(TimerWatch watch(path), ConfigError);
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_THROW(TimerWatch watch(folder_ / "nowhere" / "timers"), IoError);
}

}  // namespace
}  // namespace convoy::launch
