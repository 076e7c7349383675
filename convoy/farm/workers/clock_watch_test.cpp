// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/workers/clock_watch.h"

#include <gtest/gtest.h>

#include "convoy/core/jobs/job_store.h"
#include "files/temporary_folder.h"

namespace convoy::workers {
namespace {

constexpr const char* kOwn = "here.b00t.1:10:100";
constexpr const char* kOther = "node-3.cluster.b00t.1:20:200";

class ClockWatches : public ::testing::Test {
 protected:
  // Lets a second pass and checks the clocks. The clock of the other node is `off` milliseconds
  // ahead.
  std::vector<std::string> look(int64_t off, bool other_lives = true) {
    now_ += 1000;
    clocks_[kOwn] = now_;
    if (other_lives) clocks_[kOther] = now_ - 300 + off;
    return watch_.look();
  }

  int64_t now_ = 1'000'000'000;
  std::map<std::string, int64_t> clocks_;
  ClockWatch watch_{kOwn, std::chrono::seconds(60), [this] { return clocks_; }};
};

TEST_F(ClockWatches, SayOnceThatAnotherIsAheadOrBehindByMoreThanTheLease) {
  EXPECT_TRUE(look(125'000).empty());  // the other node may have ended
  const std::vector<std::string> said = look(125'000);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(
      said[0].starts_with("the clock of node-3.cluster is 124 s ahead of the one of this "
                          "host, more than the lease of 60 s"))
      << said[0];
  EXPECT_TRUE(look(125'000).empty());
}

TEST_F(ClockWatches, ABehindOneIsNamedToo) {
  look(-90'000);
  const std::vector<std::string> said = look(-90'000);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("89 s behind"), std::string::npos) << said[0];
}

TEST_F(ClockWatches, ADifferenceWithinTheLeaseOrAClockThatStandsIsNothing) {
  for (int turn = 0; turn < 5; ++turn) EXPECT_TRUE(look(59'000).empty());
  // The other node has ended, and its last clock stands still.
  for (int turn = 0; turn < 200; ++turn) look(0, false);
  EXPECT_TRUE(look(0, false).empty());
}

TEST(ClocksOfAStore, AreThoseOfAllThatToldTheirs) {
  const testing::TemporaryFolder folder;
  const std::string file = (folder / "store.db").string();
  const auto store = jobs::open_store(file), other = jobs::open_store(file);
  const int64_t first = store->tell_clock("a").at("a");
  const auto clocks = other->tell_clock("b");
  EXPECT_EQ(clocks.at("a"), first);
  EXPECT_GE(clocks.at("b"), first);
  other->forget_clock("a");
  EXPECT_FALSE(other->tell_clock("b").contains("a"));
}

}  // namespace
}  // namespace convoy::workers
