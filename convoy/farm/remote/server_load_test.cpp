// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/server_load.h"

#include <gtest/gtest.h>

namespace convoy::remote {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Sends requests to the servers until no server may have another one.
std::vector<ServerRequest> fill(ServerLoad& load, Clock::time_point now) {
  std::vector<ServerRequest> sent;
  while (const auto request = load.choose(now)) sent.push_back(*request);
  return sent;
}

TEST(ServerLoad, DoublesUntilARefusalThenGrowsByOne) {
  ServerLoad load(1, 1);
  auto now = Clock::time_point(seconds(1000));
  for (const size_t expected : {16, 32, 64}) {
    const std::vector<ServerRequest> sent = fill(load, now += seconds(1));
    EXPECT_EQ(sent.size(), expected);
    for (const ServerRequest& request : sent) load.succeed(request);
  }
  std::vector<ServerRequest> sent = fill(load, now += seconds(1));
  ASSERT_EQ(sent.size(), 128u);
  // A round of refusals halves the limit only once, whatever the number of refused requests.
  now += seconds(1);
  for (const ServerRequest& request : sent) load.suffer(request, Trouble::Busy, now);
  EXPECT_EQ(load.limit(0), 64);
  EXPECT_EQ(load.in_flight(), 0);
  EXPECT_FALSE(load.choose(now));
  EXPECT_GT(load.next_time(), now);
  sent = fill(load, now = load.next_time());
  EXPECT_EQ(sent.size(), 64u);
  for (const ServerRequest& request : sent) load.succeed(request);
  EXPECT_EQ(load.limit(0), 64);  // 64 steps of a little less than 1/64 each
  sent = fill(load, now);
  for (const ServerRequest& request : sent) load.succeed(request);
  EXPECT_EQ(load.limit(0), 65);
}

TEST(ServerLoad, GrowsOnlyByRequestsThatReachTheLimit) {
  ServerLoad load(1, 1);
  for (int request = 0; request < 100; ++request)
    load.succeed(*load.choose(Clock::time_point(seconds(1000))));
  EXPECT_EQ(load.limit(0), 16);
}

TEST(ServerLoad, RestsAsLongAsTheServerAsks) {
  ServerLoad load(1, 1);
  const auto now = Clock::time_point(seconds(1000));
  const auto request = load.choose(now);
  load.suffer(*request, Trouble::Busy, now + seconds(1), seconds(40));
  EXPECT_FALSE(load.choose(now + seconds(40)));
  EXPECT_EQ(load.next_time(), now + seconds(41));
  EXPECT_TRUE(load.choose(now + seconds(41)));
}

TEST(ServerLoad, TakesTheLeastBusyServer) {
  ServerLoad load(2, 1);
  const auto now = Clock::time_point(seconds(1000));
  const std::vector<ServerRequest> sent = fill(load, now);
  EXPECT_EQ(sent.size(), 32u);
  for (const ServerRequest& request : sent)
    if (request.server == 1) load.succeed(request);
  for (int request = 0; request < 16; ++request) EXPECT_EQ(load.choose(now)->server, 1u);
}

TEST(ServerLoad, SetsAServerAsideAndTriesItAgain) {
  ServerLoad load(2, 1);
  auto now = Clock::time_point(seconds(1000));
  const std::vector<ServerRequest> sent = fill(load, now);
  now += seconds(1);
  EXPECT_FALSE(load.is_set_aside(0));
  for (const ServerRequest& request : sent)
    if (request.server == 0)
      load.suffer(request, Trouble::Down, now);
    else
      load.succeed(request);
  EXPECT_TRUE(load.is_set_aside(0));
  EXPECT_EQ(load.choose(now)->server, 1u);
  // When the pause is over, one request tries the server and the other server takes the rest. If
  // that request fails, the next pause is longer.
  auto rest = load.next_time() - now;
  for (int round = 0; round < 3; ++round) {
    now += seconds(60);
    const auto probe = load.choose(now);
    EXPECT_EQ(probe->server, 0u);
    EXPECT_EQ(load.choose(now)->server, 1u);
    load.suffer(*probe, Trouble::Down, now);
  }
  now += seconds(60);
  const auto probe = load.choose(now);
  ASSERT_EQ(probe->server, 0u);
  load.succeed(*probe);
  EXPECT_FALSE(load.is_set_aside(0));
  EXPECT_EQ(load.limit(0), 17);
  EXPECT_LT(rest, seconds(60));
}

TEST(ServerLoad, SetsAServerAsideAfterRoundsOfFaults) {
  ServerLoad load(1, 1);
  auto now = Clock::time_point(seconds(1000));
  for (int round = 1; round <= 3; ++round) {
    now = std::max(now, load.next_time()) + milliseconds(1);
    const auto request = load.choose(now);
    EXPECT_EQ(load.suffer(*request, Trouble::Faulty, now + milliseconds(1)), round == 3);
  }
  EXPECT_EQ(load.limit(0), 16);  // other faults do not show an overload
}

TEST(ServerLoad, WaitsGrowUpToHalfAMinute) {
  ServerLoad load(1, 7);
  for (const int tries : {1, 2, 5, 8, 100}) {
    const milliseconds longest(250 << std::min(tries - 1, 7));
    for (int draw = 0; draw < 20; ++draw) {
      const Clock::duration wait = load.wait_after(tries);
      EXPECT_LE(wait, longest);
      EXPECT_GE(wait, longest / 2);
    }
  }
}

}  // namespace
}  // namespace convoy::remote
