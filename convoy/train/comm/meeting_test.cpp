// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/meeting.h"

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

std::shared_ptr<Meeting> meet() {
  return std::make_shared<Meeting>(read_rank_environment(), std::chrono::seconds(20));
}

RANK_BODY(DecideTogether) {
  const auto meeting = meet();
  const std::string own = std::string(static_cast<size_t>(meeting->rank()) * 3, 'x') + '\0';
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(meeting->word_of_rank_zero(meeting->rank() == 0 ? "a word" : "another"), "a word");
    const std::string answer = meeting->decide(own, [&](const std::vector<std::string>& brought) {
      EXPECT_EQ(meeting->rank(), 0);
      std::string all;
      for (const std::string& one : brought) all += one;
      return all;
    });
    EXPECT_EQ(answer, std::string("\0xxx\0xxxxxx\0", 12));
  }
}
TEST(Meeting, RankZeroSeesAllAndAnswersAll) {
  expect_all_well(start_ranks(3, "DecideTogether"));
  expect_all_well(start_ranks(3, "DecideTogether", {.rendezvous = Rendezvous::Tcp}));
}
TEST(Meeting, OfOneDecidesAlone) {
  Meeting meeting({}, std::chrono::seconds(1));
  meeting.wait_for_all();
  EXPECT_EQ(meeting.word_of_rank_zero("a word"), "a word");
  EXPECT_EQ(meeting.decide("own", [](const auto& brought) { return brought.at(0) + "!"; }), "own!");
}

// Rank 1 comes late to each, by more than a collective may take.
RANK_BODY(WaitsLongerThanACollective) {
  const auto slow_work = [](const Meeting& meeting) {
    if (meeting.rank() == 1) sleep(4);
  };
  const auto meeting = meet();
  slow_work(*meeting);
  meeting->wait_for_all();
  const auto group = join_group_at(meeting, std::chrono::seconds(2));
  slow_work(*meeting);
  group->wait_for_all();
  EXPECT_FALSE(group->any(false));
}
TEST(Meeting, WaitsHaveNoTimeLimit) {
  expect_all_well(start_ranks(2, "WaitsLongerThanACollective"));
  expect_all_well(start_ranks(2, "WaitsLongerThanACollective", {.rendezvous = Rendezvous::Tcp}));
}

RANK_BODY(OneTellsItsFailure) {
  const auto meeting = meet();
  meeting->wait_for_all();
  if (meeting->rank() == 1)
    meeting->tell_failure("no such rows");
  else
    meeting->wait_for_all();
}
TEST(Meeting, FailureThatIsToldEndsTheWaitsOfTheOthers) {
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
