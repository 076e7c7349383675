// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/other_work.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy {
namespace {

// /proc/stat as Linux writes it on a machine of three CPUs.
constexpr const char* kStat =
    "cpu  900 0 300 9000 50 10 40 0 0 0\n"
    "cpu0 100 20 30 4000 50 5 5 40 7 0\n"
    "cpu1 300 0 100 3000 0 0 0 0 0 0\n"
    "cpu10 500 0 0 2000 0 0 0 0 0 0\n"
    "intr 1 2 3\nctxt 4\nprocs_running 3\n";

TEST(OtherWork, CountsTheTimeOfItsOwnCpusAlone) {
  EXPECT_DOUBLE_EQ(busy_seconds(kStat, {0}).value(), 2.0) << "neither idle, iowait nor guest";
  EXPECT_DOUBLE_EQ(busy_seconds(kStat, {1}).value(), 4.0) << "not cpu10's";
  EXPECT_DOUBLE_EQ(busy_seconds(kStat, {0, 1, 10}).value(), 11.0);
  EXPECT_FALSE(busy_seconds(kStat, {0, 2}).has_value());
  EXPECT_FALSE(busy_seconds("", {0}).has_value());
  EXPECT_FALSE(busy_seconds(kStat, {}).has_value());
}

TEST(OtherWork, IsWhatThisProcessHasNotDone) {
  const CpuTimes begin{.at = 10, .busy = 100, .own = 3};
  EXPECT_DOUBLE_EQ(cores_of_others(begin, {.at = 12, .busy = 104, .own = 5}), 1.0);
  EXPECT_DOUBLE_EQ(cores_of_others(begin, {.at = 12, .busy = 102, .own = 5.01}), 0.0);
  EXPECT_DOUBLE_EQ(cores_of_others(begin, begin), 0.0);
}

TEST(OtherWork, LeavesAtLeastOneCore) {
  EXPECT_EQ(free_cores(2, 0, 0.0), 2);
  EXPECT_EQ(free_cores(2, 0, 0.4), 2) << "a moment's work is none";
  EXPECT_EQ(free_cores(2, 0, 1.0), 1);
  EXPECT_EQ(free_cores(2, 0, 2.0), 1);
  EXPECT_EQ(free_cores(1, 0, 5.0), 1);
  EXPECT_EQ(free_cores(64, 0, 20.6), 43);
  EXPECT_EQ(free_cores(64, 8, 20.6), 8) << "the quota's cores are still free";
  EXPECT_EQ(free_cores(64, 8, 60.0), 4);
}

TEST(OtherWork, KnowsNothingWithoutCounters) {
  const testing::TemporaryFolder folder;
  EXPECT_FALSE(OtherWork(folder.path()).busy_cores().has_value());
  write_file_atomic(folder / "stat", "cpu  1 2 3 4\n");
  EXPECT_FALSE(OtherWork(folder.path()).busy_cores().has_value());
}

// Other processes of the machine count too, so only a lower bound is known.
TEST(OtherWork, SeesAProcessThatComputes) {
  const pid_t other = ::fork();
  if (other == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
    }
  }
  const OtherWork watch;
  const std::optional<double> busy = watch.busy_cores();
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  if (!busy) GTEST_SKIP() << "/proc/stat does not name this process's CPUs";
  EXPECT_GE(*busy, 0.5);
}

}  // namespace
}  // namespace convoy
