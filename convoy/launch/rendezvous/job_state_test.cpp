// SPDX-License-Identifier: Apache-2.0
//
// Tests the coordinator's decisions with a simulated clock and without sockets.
#include "convoy/launch/rendezvous/job_state.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "convoy/launch/rendezvous/membership.h"
#include "convoy/launch/rendezvous/messages.h"

namespace convoy::rendezvous {
namespace {

using namespace std::chrono_literals;

CoordinatorOptions options(int min_nodes, int max_nodes) {
  CoordinatorOptions options;
  options.min_nodes = min_nodes;
  options.max_nodes = max_nodes;
  options.log = Log(LogLevel::Quiet);
  return options;
}

class JobStateTest : public ::testing::Test {
 protected:
  void start(const CoordinatorOptions& given) {
    options_ = given;
    job_.emplace(given, now_);
  }

  NodeOffer offer(int node_rank, int num_ranks = 1) const {
    return {.run_id = options_.run_id,
            .min_nodes = options_.min_nodes,
            .max_nodes = options_.max_nodes,
            .node_rank = node_rank,
            .num_local_ranks = num_ranks,
            .host_name = {},
            .address = "10.0.0." + std::to_string(next_id_)};
  }

  NodeId join(int node_rank, int num_ranks = 1) {
    const NodeId id = next_id_;
    const NodeOffer offered = offer(node_rank, num_ranks);
    ++next_id_;
    const auto refusal = job_->join(id, offered, {offered.address, "10.0.0.100"}, now_);
    EXPECT_FALSE(refusal.has_value()) << refusal->words;
    last_attempt_[id] = -1;
    return id;
  }

  void ready(NodeId id) { job_->ready(id, last_attempt_[id], 1000 + static_cast<int>(id), now_); }

  NodeId join_ready(int node_rank, int num_ranks = 1) {
    const NodeId id = join(node_rank, num_ranks);
    ready(id);
    return id;
  }

  // Lets `time` pass. All nodes but the `silent` ones send heartbeats.
  void pass(Clock::duration time, const std::vector<NodeId>& silent = {}) {
    for (Clock::duration passed{}; passed < time; passed += 250ms) {
      now_ += 250ms;
      for (const auto& [id, attempt] : last_attempt_)
        if (std::find(silent.begin(), silent.end(), id) == silent.end()) job_->heard(id, now_);
      job_->tick(now_);
    }
  }

  void collect() {
    for (JobMessage& message : job_->take_messages()) {
      if (const auto* start = std::get_if<Start>(&message.what)) {
        assigned_[message.to] = start->assignment();
        last_attempt_[message.to] = start->common->attempt;
      } else if (const auto* notice = std::get_if<Notice>(&message.what)) {
        notices_[message.to].push_back(*notice);
      } else {
        waiting_.push_back(std::get<Waiting>(message.what).words);
      }
    }
  }

  void end(NodeId id, std::vector<int> codes, std::optional<int64_t> progress = 1,
           std::optional<FailureCause> cause = std::nullopt) {
    job_->attempt_end(id, job_->attempt(), {std::move(codes), progress, std::move(cause)}, now_);
  }

  Notice last_notice(NodeId id) {
    collect();
    EXPECT_FALSE(notices_[id].empty());
    return notices_[id].empty() ? Notice{} : notices_[id].back();
  }

  CoordinatorOptions options_;
  Clock::time_point now_{1000s};
  std::optional<JobState> job_;
  NodeId next_id_ = 1;
  std::map<NodeId, int> last_attempt_;
  std::map<NodeId, Assignment> assigned_;
  std::map<NodeId, std::vector<Notice>> notices_;
  std::vector<std::string> waiting_;
};

TEST(Membership, AskedRanksFirstThenTheCoordinatorsNodeThenTheOrderOfJoining) {
  std::vector<JoinedNode> seats(4);
  seats[0].asked_rank = 2;
  seats[3].hosts_coordinator = true;
  EXPECT_EQ(node_ranks(seats, 4), (std::vector<int>{2, 1, 3, 0}));
}

TEST(Membership, GapsOfAnElasticJobAreClosed) {
  std::vector<JoinedNode> seats(3);
  seats[0].previous_rank = 3;
  seats[1].previous_rank = 1;
  EXPECT_EQ(node_ranks(seats, 8), (std::vector<int>{2, 1, 0}));
}

TEST(Membership, AThousandsOfNodesAreQuick) {
  const std::vector<JoinedNode> seats(100'000);
  EXPECT_EQ(node_ranks(seats, 100'000).back(), 99'999);
}

TEST_F(JobStateTest, StartsWhenAllAreThereAndReady) {
  start(options(2, 2));
  const NodeId one = join_ready(1, 3);
  const NodeId zero = join(0, 5);
  collect();
  EXPECT_TRUE(assigned_.empty());
  ready(zero);
  collect();
  EXPECT_EQ(assigned_[one].first_rank, 5);
  EXPECT_EQ(assigned_[one].world_size, 8);
  EXPECT_EQ(assigned_[one].master_address, "10.0.0.2");
  EXPECT_EQ(assigned_[one].own_address, "10.0.0.1");
  EXPECT_EQ(assigned_[one].master_port, 1002);
}

TEST_F(JobStateTest, ANodeOnTheCoordinatorsHostIsReachedAsTheOthersReachTheCoordinator) {
  start(options(2, 2));
  NodeOffer here = offer(0);
  here.address = "127.0.0.1";
  ASSERT_FALSE(job_->join(1, here, {"127.0.0.1", "127.0.0.1"}, now_));
  next_id_ = 2;
  last_attempt_[1] = -1;
  const NodeId other = join_ready(1);
  ready(1);
  collect();
  EXPECT_EQ(assigned_[other].master_address, "10.0.0.100");
  EXPECT_EQ(assigned_[1].own_address, "10.0.0.100");
}

TEST_F(JobStateTest, MissingNodesAreNamedAndTheJobEndsInTheEnd) {
  start(options(3, 3));
  const NodeId zero = join_ready(0);
  pass(20s);
  collect();
  ASSERT_FALSE(waiting_.empty());
  EXPECT_NE(waiting_[0].find("missing: node rank 1, 2"), std::string::npos) << waiting_[0];
  pass(600s);
  EXPECT_EQ(last_notice(zero).exit_code, 13);
}

TEST_F(JobStateTest, ASilentNodeIsLostAfterEightSeconds) {
  start(options(2, 2));
  const NodeId zero = join_ready(0);
  const NodeId one = join_ready(1);
  pass(7s, {one});
  collect();
  EXPECT_TRUE(notices_[zero].empty()) << "a cut of a few seconds heals";
  pass(1s, {one});
  EXPECT_EQ(last_notice(zero).kind, Notice::Kind::PeerNodeLost);
  EXPECT_EQ(last_notice(zero).cause.node_rank, 1);
  EXPECT_EQ(last_notice(one).kind, Notice::Kind::ShutDown);
  end(zero, {143}, 1, FailureCause{.exit_code = 13});
  EXPECT_EQ(last_notice(zero).kind, Notice::Kind::ShutDown);
  EXPECT_NE(last_notice(zero).words.find("node 1"), std::string::npos) << last_notice(zero).words;
}

TEST_F(JobStateTest, APauseOfTheCoordinatorItselfIsNobodysSilence) {
  start(options(2, 2));
  const NodeId zero = join_ready(0);
  join_ready(1);
  now_ += 60s;
  job_->tick(now_);
  collect();
  EXPECT_TRUE(notices_[zero].empty());
}

TEST_F(JobStateTest, AnOwnErrorBeatsALostNodeWhichBeatsALostPeer) {
  start(options(3, 3));
  const NodeId zero = join_ready(0);
  const NodeId one = join_ready(1);
  const NodeId two = join_ready(2);
  collect();
  job_->failure(zero, 0, {.exit_code = 13, .rank = 0, .sentence = "peer lost"}, now_);
  job_->lost(two, "is gone", now_);
  end(zero, {13});
  job_->failure(one, 0, {.exit_code = 139, .rank = 1}, now_);
  end(one, {139});
  EXPECT_EQ(last_notice(zero).exit_code, 139);
}

// A rank of one host waits in a collective that a rank of another host never entered. Only the
// coordinator sees the records of both.
TEST_F(JobStateTest, TheDiagnosisOfCollectivesIsOverAllNodes) {
  CoordinatorOptions judging = options(2, 2);
  judging.judge = [](const std::vector<telemetry::RankFlight>& flights) {
    std::string seen;
    for (const telemetry::RankFlight& flight : flights)
      seen += fmt::format("rank {} at {} #{}, ", flight.rank, flight.records.back().operation,
                          flight.records.back().sequence);
    return seen;
  };
  start(judging);
  const NodeId zero = join_ready(0);
  const NodeId one = join_ready(1);
  collect();
  telemetry::CollectiveRecord record;
  record.group = "world";
  record.operation = "all_reduce";
  record.sequence = 7;
  record.group_size = 2;
  record.state = telemetry::CollectiveState::Waited;
  record.entered_us_ago = record.waited_us_ago = 40'000'000;
  telemetry::RankFlight waiting;
  waiting.pid = 10;
  waiting.rank = 0;
  waiting.records = {record};
  record.sequence = 6;
  record.state = telemetry::CollectiveState::Done;
  record.left_us_ago = 39'000'000;
  telemetry::RankFlight absent;
  absent.pid = 11;
  absent.rank = 1;
  absent.records = {record};
  AttemptEnd end_of_zero;
  end_of_zero.exit_codes = {13};
  end_of_zero.cause = FailureCause{.exit_code = 13, .rank = 0, .sentence = "timed out"};
  end_of_zero.flights = {waiting};
  // The message is read from JSON, as it is received from a node.
  job_->attempt_end(zero, 0, read_attempt_end(to_json(end_of_zero)), now_);
  AttemptEnd end_of_one;
  end_of_one.exit_codes = {143};
  end_of_one.flights = {absent};
  job_->attempt_end(one, 0, read_attempt_end(to_json(end_of_one)), now_);
  const Notice notice = read_notice(to_json(last_notice(zero)));
  EXPECT_EQ(notice.exit_code, 13);
  EXPECT_EQ(notice.diagnosis, "rank 0 at all_reduce #7, rank 1 at all_reduce #6, ");
}

TEST_F(JobStateTest, ALostNodeBeatsARankThatLostItsPeer) {
  start(options(2, 2));
  const NodeId zero = join_ready(0);
  const NodeId one = join_ready(1);
  job_->failure(zero, 0, {.exit_code = 13, .rank = 0, .sentence = "connection reset"}, now_);
  end(zero, {13});
  pass(8s, {one});
  EXPECT_NE(last_notice(zero).words.find("silent"), std::string::npos) << last_notice(zero).words;
}

TEST_F(JobStateTest, ARankThatEndsWith1BecauseANodeIsGoneIsNotToBlame) {
  start(options(2, 2));
  const NodeId zero = join_ready(0);
  const NodeId one = join_ready(1);
  job_->failure(zero, 0, {.exit_code = 1, .rank = 0, .sentence = "lost rank 1"}, now_);
  pass(500ms);
  job_->lost(one, "is gone", now_);
  last_attempt_.erase(one);
  end(zero, {1});
  EXPECT_EQ(last_notice(zero).exit_code, 13);
  EXPECT_NE(last_notice(zero).words.find("node 1"), std::string::npos) << last_notice(zero).words;
}

TEST_F(JobStateTest, ARankThatFailedLongBeforeANodeWasLostIsToBlame) {
  start(options(2, 2));
  const NodeId zero = join_ready(0);
  const NodeId one = join_ready(1);
  job_->failure(zero, 0, {.exit_code = 1, .rank = 0, .sentence = "a bug"}, now_);
  pass(3s);
  job_->lost(one, "is gone", now_);
  last_attempt_.erase(one);
  end(zero, {1});
  EXPECT_EQ(last_notice(zero).exit_code, 1);
}

TEST_F(JobStateTest, AFixedJobWaitsForASuccessorInThePlaceOfALostNode) {
  CoordinatorOptions with_restart = options(2, 2);
  with_restart.restarts.max_restarts = 3;
  start(with_restart);
  const NodeId zero = join_ready(0);
  const NodeId one = join_ready(1);
  job_->lost(one, "is gone", now_);
  last_attempt_.erase(one);
  end(zero, {143});
  collect();
  ready(zero);
  pass(1s);
  collect();
  EXPECT_EQ(assigned_[zero].attempt, 0) << "one node is not enough";
  const NodeId successor = join_ready(1);
  collect();
  EXPECT_EQ(assigned_[zero].attempt, 1);
  EXPECT_EQ(assigned_[successor].node_rank, 1);
}

TEST_F(JobStateTest, AnElasticJobGoesOnWithoutALostNodeAndRanksStayInOrder) {
  start(options(1, 3));
  const NodeId zero = join_ready(-1);
  const NodeId one = join_ready(-1);
  const NodeId two = join_ready(-1);
  collect();
  EXPECT_EQ(assigned_[two].node_rank, 2);
  job_->lost(one, "is gone", now_);
  last_attempt_.erase(one);
  end(zero, {143}, 10);
  end(two, {143}, 10);
  ready(zero);
  ready(two);
  pass(10s);
  collect();
  EXPECT_EQ(assigned_[two].attempt, 0) << "the last call still runs";
  pass(25s);
  collect();
  EXPECT_EQ(assigned_[two].attempt, 1);
  EXPECT_EQ(assigned_[zero].node_rank, 0);
  EXPECT_EQ(assigned_[two].node_rank, 1);
  EXPECT_EQ(assigned_[two].resizes, 1);
  EXPECT_EQ(assigned_[two].restarts, 0);
}

TEST_F(JobStateTest, AnElasticJobGoesOnWithoutANodeThatIsAskedToStopWhileEnoughStay) {
  start(options(2, 3));
  const NodeId zero = join_ready(-1);
  const NodeId one = join_ready(-1);
  const NodeId two = join_ready(-1);
  collect();
  job_->stop_request(one, SIGUSR1, now_);
  EXPECT_EQ(last_notice(zero).kind, Notice::Kind::StopForResize);
  EXPECT_EQ(last_notice(zero).signal, SIGUSR1);
  EXPECT_TRUE(notices_[one].empty()) << "its own fault needs no notice";
  for (const NodeId node : {zero, one, two}) end(node, {75}, 10);
  job_->leave(one, "", now_);
  last_attempt_.erase(one);
  ready(zero);
  ready(two);
  pass(35s);
  collect();
  EXPECT_EQ(assigned_[two].attempt, 1);
  EXPECT_EQ(assigned_[two].num_nodes(), 2);
  // The job needs both remaining nodes, so it ends when one of them is asked to stop.
  job_->stop_request(two, SIGTERM, now_);
  EXPECT_EQ(last_notice(zero).kind, Notice::Kind::StopRequested);
  end(zero, {75}, 20);
  end(two, {75}, 20);
  EXPECT_EQ(last_notice(zero).exit_code, 75);
}

TEST_F(JobStateTest, NodesThatAreAllAskedToStopStopTheJob) {
  start(options(1, 3));
  const std::vector<NodeId> nodes = {join_ready(-1), join_ready(-1), join_ready(-1)};
  collect();
  for (const NodeId node : nodes) job_->stop_request(node, SIGTERM, now_);
  for (const NodeId node : nodes) end(node, {75}, 10);
  EXPECT_EQ(last_notice(nodes[0]).exit_code, 75);
  EXPECT_EQ(job_->phase(), JobState::Phase::Over);
}

TEST_F(JobStateTest, ElasticStartsAfterTheLastCall) {
  start(options(2, 4));
  const NodeId zero = join_ready(-1);
  pass(60s);
  join_ready(-1);
  pass(20s);
  collect();
  EXPECT_TRUE(assigned_.empty());
  const NodeId three = join_ready(-1);
  pass(10s);
  collect();
  EXPECT_EQ(assigned_[zero].world_size, 3);
  EXPECT_EQ(assigned_[three].node_rank, 2);
}

TEST_F(JobStateTest, ANodeThatFlapsStopsNobody) {
  start(options(1, 2));
  const NodeId zero = join_ready(-1);
  pass(31s);
  for (int times = 0; times < 5; ++times) {
    const NodeId flapping = join(-1);
    pass(500ms);
    job_->leave(flapping, "", now_);
    last_attempt_.erase(flapping);
    pass(3s);
  }
  collect();
  EXPECT_TRUE(notices_[zero].empty());
}

TEST_F(JobStateTest, TheSuccessorOfASilentNodeComesAgainThePlaceOfALiveOneIsTaken) {
  start(options(2, 2));
  join_ready(0);
  const NodeId one = join_ready(1);
  std::optional<Refusal> refusal = job_->join(77, offer(1), {"10.0.0.9", ""}, now_);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_FALSE(refusal->retry_later);
  EXPECT_EQ(refusal->exit_code, 2);
  pass(4s, {one});
  refusal = job_->join(77, offer(1), {"10.0.0.9", ""}, now_);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_TRUE(refusal->retry_later);
}

TEST_F(JobStateTest, ThreeFailuresWithoutProgressEndIn16) {
  CoordinatorOptions with_restarts = options(1, 1);
  with_restarts.restarts.max_restarts = 100;
  start(with_restarts);
  const NodeId zero = join_ready(0);
  for (int attempt = 0; attempt < 3; ++attempt) {
    collect();
    ASSERT_EQ(assigned_[zero].attempt, attempt);
    end(zero, {1}, 0, FailureCause{.exit_code = 1, .rank = 0});
    collect();
    ready(zero);
  }
  EXPECT_EQ(last_notice(zero).exit_code, 16);
}

TEST_F(JobStateTest, ReportsOfAnotherAttemptAreIgnored) {
  CoordinatorOptions with_restarts = options(1, 1);
  with_restarts.restarts.max_restarts = 100;
  start(with_restarts);
  const NodeId zero = join_ready(0);
  end(zero, {1}, 0, FailureCause{.exit_code = 1});
  collect();
  ready(zero);
  collect();
  job_->failure(zero, 0, {.exit_code = 1}, now_);
  job_->attempt_end(zero, 0, {{1}, 0, FailureCause{.exit_code = 1}}, now_);
  EXPECT_EQ(job_->phase(), JobState::Phase::Running);
  EXPECT_EQ(job_->attempt(), 1);
}

TEST_F(JobStateTest, ANodeThatDoesNotEndItsRanksIsGivenUp) {
  start(options(2, 2));
  const NodeId zero = join_ready(0);
  join_ready(1);
  end(zero, {1}, 0, FailureCause{.exit_code = 1});
  pass(331s);
  EXPECT_EQ(last_notice(zero).kind, Notice::Kind::ShutDown);
  EXPECT_EQ(last_notice(zero).exit_code, 1);
}

TEST_F(JobStateTest, OwnWorkersEndTogetherForeignOnesMayTakeTheirTime) {
  CoordinatorOptions own = options(2, 2);
  own.early_exit_limit = 30s;
  start(own);
  const NodeId zero = join_ready(0);
  const NodeId one = join_ready(1);
  end(zero, {0});
  pass(29s);
  collect();
  EXPECT_TRUE(notices_[one].empty());
  pass(2s);
  EXPECT_EQ(last_notice(one).kind, Notice::Kind::StopForFailure);
  end(one, {143});
  EXPECT_EQ(last_notice(zero).exit_code, 13);
}

TEST_F(JobStateTest, ANodeThatSavedOnRequestStopsTheOthers) {
  start(options(2, 2));
  const NodeId zero = join_ready(0);
  const NodeId one = join_ready(1);
  end(zero, {75});
  EXPECT_EQ(last_notice(one).kind, Notice::Kind::StopRequested);
  end(one, {75});
  EXPECT_EQ(last_notice(one).exit_code, 75);
}

TEST_F(JobStateTest, ALauncherThatGoesAfterItsPartIsNoFailure) {
  start(options(2, 2));
  const NodeId zero = join_ready(0);
  const NodeId one = join_ready(1);
  end(zero, {0});
  job_->lost(zero, "is gone", now_);
  end(one, {0});
  EXPECT_EQ(last_notice(one).exit_code, 0);
}

}  // namespace
}  // namespace convoy::rendezvous
