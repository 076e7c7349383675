// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/health/straggler.h"

#include <gtest/gtest.h>

namespace convoy::launch {
namespace {

using std::chrono::milliseconds;

// Returns the records of 30 collectives of one second each; the newest has just ended. A rank
// spends `wait_ms(rank, collective)` of that second waiting.
template <class Wait>
std::vector<telemetry::RankFlight> steps(int num_ranks, Wait wait_ms) {
  std::vector<telemetry::RankFlight> flights;
  for (int rank = 0; rank < num_ranks; ++rank) {
    telemetry::RankFlight& flight = flights.emplace_back();
    flight.rank = rank;
    flight.pid = 1;
    for (int number = 0; number < 30; ++number) {
      telemetry::CollectiveRecord& record = flight.records.emplace_back();
      record.group = "world";
      record.sequence = number;
      record.state = telemetry::CollectiveState::Done;
      record.left_us_ago = (30 - number) * int64_t{1'000'000};
      record.waited_us_ago = record.left_us_ago + wait_ms(rank, number) * 1000;
      record.entered_us_ago = record.waited_us_ago;
    }
  }
  return flights;
}

TEST(Straggler, RankThatWaitsLeastIsNamed) {
  const auto flights = steps(4, [](int rank, int number) {
    return rank == 2 ? 5 : 400 + number;  // rank 2 computes while the others wait
  });
  const auto found = find_straggler(flights, milliseconds(31'000));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->rank, 2);
  EXPECT_EQ(found->num_collectives, 30);
  EXPECT_EQ(found->share_last, 1);
  EXPECT_NEAR(found->others_wait_share, 0.41, 0.02);
}

TEST(Straggler, EvenRanksAreNone) {
  // Each rank is the last one in some collectives, and all ranks wait for the network.
  EXPECT_FALSE(
      find_straggler(steps(4, [](int rank, int number) { return rank == number % 4 ? 5 : 400; }),
                     milliseconds(31'000)));
  // Rank 1 is always the last one, but by little.
  EXPECT_FALSE(find_straggler(steps(4, [](int rank, int) { return rank == 1 ? 5 : 50; }),
                              milliseconds(31'000)));
}

TEST(Straggler, LittleIsNoEvidence) {
  const auto one_late = [](int rank, int) { return rank == 1 ? 5 : 900; };
  EXPECT_FALSE(find_straggler(steps(1, one_late), milliseconds(31'000)));
  EXPECT_FALSE(find_straggler({}, milliseconds(31'000)));
  EXPECT_TRUE(find_straggler(steps(2, one_late), milliseconds(31'000)));
  EXPECT_FALSE(find_straggler(steps(2, one_late), milliseconds(10'000)));
}

}  // namespace
}  // namespace convoy::launch
