// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/store_barrier.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "convoy/core/base/error.h"
#include "convoy/train/comm/group.h"
#include "ranks/ranks.h"

namespace convoy::comm {
namespace {

using testing::expect_all_well;
using testing::Rendezvous;
using testing::start_ranks;

std::shared_ptr<StoreBarrier> meet() {
  return std::make_shared<StoreBarrier>(read_rank_environment(), std::chrono::seconds(20));
}

RANK_BODY(DecideTogether) {
  const auto store_barrier = meet();
  const std::string own = std::string(static_cast<size_t>(store_barrier->rank()) * 3, 'x') + '\0';
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(store_barrier->word_of_rank_zero(store_barrier->rank() == 0 ? "a word" : "another"),
              "a word");
    const std::string answer =
        store_barrier->decide(own, [&](const std::vector<std::string>& brought) {
          EXPECT_EQ(store_barrier->rank(), 0);
          std::string all;
          for (const std::string& one : brought) all += one;
          return all;
        });
    EXPECT_EQ(answer, std::string("\0xxx\0xxxxxx\0", 12));
  }
}
TEST(StoreBarrier, RankZeroSeesAllAndAnswersAll) {
  expect_all_well(start_ranks(3, "DecideTogether"));
  expect_all_well(start_ranks(3, "DecideTogether", {.rendezvous = Rendezvous::Tcp}));
}
TEST(StoreBarrier, OfOneDecidesAlone) {
  StoreBarrier store_barrier({}, std::chrono::seconds(1));
  store_barrier.wait_for_all();
  EXPECT_EQ(store_barrier.word_of_rank_zero("a word"), "a word");
  EXPECT_EQ(store_barrier.decide("own", [](const auto& brought) { return brought.at(0) + "!"; }),
            "own!");
}

// Rank 1 is late to each wait, by more than the time limit of a collective.
RANK_BODY(WaitsLongerThanACollective) {
  const auto slow_work = [](const StoreBarrier& store_barrier) {
    if (store_barrier.rank() == 1) sleep(4);
  };
  const auto store_barrier = meet();
  slow_work(*store_barrier);
  store_barrier->wait_for_all();
  const auto group = join_group_at(store_barrier, std::chrono::seconds(2));
  slow_work(*store_barrier);
  group->wait_for_all();
  EXPECT_FALSE(group->any(false));
}
TEST(StoreBarrier, WaitsHaveNoTimeLimit) {
  expect_all_well(start_ranks(2, "WaitsLongerThanACollective"));
  expect_all_well(start_ranks(2, "WaitsLongerThanACollective", {.rendezvous = Rendezvous::Tcp}));
}

RANK_BODY(OneTellsItsFailure) {
  const auto store_barrier = meet();
  store_barrier->wait_for_all();
  if (store_barrier->rank() == 1)
    store_barrier->tell_failure("no such rows");
  else
    store_barrier->wait_for_all();
}
TEST(StoreBarrier, FailureThatIsToldEndsTheWaitsOfTheOthers) {
  const auto results = start_ranks(3, "OneTellsItsFailure");
  EXPECT_EQ(results[1].exit_code, 0) << results[1].output;
  for (const size_t rank : {0, 2}) {
    EXPECT_EQ(results[rank].exit_code, 13) << results[rank].output;
    EXPECT_NE(results[rank].output.find("rank 1 failed: no such rows"), std::string::npos)
        << results[rank].output;
  }
}

}  // namespace
}  // namespace convoy::comm
