// SPDX-License-Identifier: Apache-2.0
//
// Runs a coordinator and links in one process, over loopback, with short time limits.
#include "convoy/launch/rendezvous/coordinator.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <regex>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/launch/rendezvous/key_value_client.h"
#include "convoy/launch/rendezvous/node_link.h"
#include "convoy/launch/rendezvous/resolve_host.h"

namespace convoy::rendezvous {
namespace {

using namespace std::chrono_literals;

constexpr const char* kSecret = "a secret of the test, long enough";

class CoordinatorTest : public ::testing::Test {
 protected:
  CoordinatorOptions options(int min_nodes, int max_nodes) {
    CoordinatorOptions options;
    options.run_id = "run";
    options.min_nodes = min_nodes;
    options.max_nodes = max_nodes;
    options.join_timeout = 10s;
    options.last_call_timeout = 200ms;
    options.resize_settle = 100ms;
    options.heartbeat = 50ms;
    options.silence_limit = 1s;
    options.handshake_limit = 500ms;
    return options;
  }

  void start(CoordinatorOptions options, const std::string& secret = kSecret) {
    coordinator_ = std::make_unique<Coordinator>(std::move(options), JobToken::from_secret(secret),
                                                 listen_on("127.0.0.1", 0));
  }

  NodeLinkOptions link_options(int node_rank, int num_ranks = 2) {
    NodeLinkOptions options;
    options.coordinator = coordinator_->endpoint();
    options.offer = {.run_id = "run",
                     .min_nodes = 2,
                     .max_nodes = 2,
                     .node_rank = node_rank,
                     .num_local_ranks = num_ranks,
                     .host_name = "host-" + std::to_string(node_rank)};
    options.join_timeout = 5s;
    options.heartbeat = 50ms;
    options.silence_limit = 1s;
    options.stranger_limit = 300ms;
    return options;
  }

  std::unique_ptr<NodeLink> link(const NodeLinkOptions& options,
                                 const std::string& secret = kSecret) {
    return std::make_unique<NodeLink>(options, JobToken::from_secret(secret));
  }

  // Returns the next notice, which must come within 5 s.
  static Notice await_notice(NodeLink& link) {
    pollfd watched{link.descriptor(), POLLIN, 0};
    ::poll(&watched, 1, 5'000);
    const std::optional<Notice> notice = link.next();
    EXPECT_TRUE(notice.has_value()) << "no notice came";
    return notice.value_or(Notice{});
  }

  static Assignment assigned(NodeLink& link, int port) {
    const JoinOutcome outcome = link.wait_for_assignment(port, -1);
    EXPECT_EQ(outcome.kind, JoinOutcome::Kind::Assigned) << outcome.end.words;
    return outcome.assignment;
  }

  // Two nodes with two ranks each, in their first attempt.
  void start_two(CoordinatorOptions options) {
    start(std::move(options));
    first_ = link(link_options(0));
    second_ = link(link_options(1));
    auto other = std::async(std::launch::async, [&] { return assigned(*second_, 1001); });
    first_assignment_ = assigned(*first_, 1000);
    second_assignment_ = other.get();
  }

  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<NodeLink> first_;
  std::unique_ptr<NodeLink> second_;
  Assignment first_assignment_;
  Assignment second_assignment_;
};

TEST_F(CoordinatorTest, UnevenNodesGetTheirRanks) {
  start(options(2, 2));
  auto first = link(link_options(0, 3));
  auto second = link(link_options(1, 1));
  auto other = std::async(std::launch::async, [&] { return assigned(*second, 1001); });
  const Assignment zero = assigned(*first, 1000);
  const Assignment one = other.get();
  EXPECT_EQ(zero.node_rank, 0);
  EXPECT_EQ(one.node_rank, 1);
  EXPECT_EQ(zero.first_rank, 0);
  EXPECT_EQ(one.first_rank, 3);
  EXPECT_EQ(one.world_size, 4);
  EXPECT_EQ(one.ranks_per_node, (std::vector<int>{3, 1}));
  EXPECT_EQ(one.master_address, "127.0.0.1");
  EXPECT_EQ(one.master_port, 1000);
  EXPECT_EQ(one.attempt, 0);
  EXPECT_EQ(one.store_address, coordinator_->endpoint().text());
}

TEST_F(CoordinatorTest, AJobThatEndsWellEndsForAll) {
  start_two(options(2, 2));
  first_->report_attempt_end({.exit_codes = {0, 0}, .progress = {}, .cause = {}});
  second_->report_attempt_end({.exit_codes = {0, 0}, .progress = {}, .cause = {}});
  const JoinOutcome outcome = first_->wait_for_assignment(0, -1);
  EXPECT_EQ(outcome.kind, JoinOutcome::Kind::Ended);
  EXPECT_EQ(outcome.end.kind, Notice::Kind::ShutDown);
  EXPECT_EQ(outcome.end.exit_code, 0);
  EXPECT_EQ(second_->wait_for_assignment(0, -1).end.exit_code, 0);
}

TEST_F(CoordinatorTest, AFailureStopsTheOthersWithItsOwnWords) {
  start_two(options(2, 2));
  first_->report_failure({.exit_code = 13, .rank = 1, .sentence = "peer closed the connection"});
  EXPECT_EQ(await_notice(*second_).kind, Notice::Kind::StopForFailure);
  second_->report_failure({.exit_code = 12, .rank = 2, .sentence = "out of memory"});
  first_->report_attempt_end({.exit_codes = {13, 13}, .progress = 4, .cause = {}});
  second_->report_attempt_end({.exit_codes = {12, 143}, .progress = 4, .cause = {}});
  const JoinOutcome outcome = first_->wait_for_assignment(0, -1);
  ASSERT_EQ(outcome.kind, JoinOutcome::Kind::Ended);
  EXPECT_EQ(outcome.end.exit_code, 12) << "an own error beats a lost peer";
  EXPECT_NE(outcome.end.words.find("rank 2 on node 1"), std::string::npos) << outcome.end.words;
  EXPECT_NE(outcome.end.words.find("out of memory"), std::string::npos) << outcome.end.words;
}

TEST_F(CoordinatorTest, RestartsTheWholeJobWithTheSameRanks) {
  CoordinatorOptions with_restarts = options(2, 2);
  with_restarts.restarts.max_restarts = 1;
  start_two(with_restarts);
  second_->report_failure({.exit_code = 139, .rank = 3, .sentence = {}});
  EXPECT_EQ(await_notice(*first_).cause.node_rank, 1);
  first_->report_attempt_end({.exit_codes = {143, 143}, .progress = 7, .cause = {}});
  second_->report_attempt_end({.exit_codes = {143, 139}, .progress = 7, .cause = {}});
  auto other = std::async(std::launch::async, [&] { return assigned(*second_, 2001); });
  const Assignment zero = assigned(*first_, 2000);
  const Assignment one = other.get();
  EXPECT_EQ(one.attempt, 1);
  EXPECT_EQ(one.restarts, 1);
  EXPECT_EQ(one.failures, 1);
  EXPECT_EQ(zero.node_rank, 0);
  EXPECT_EQ(one.first_rank, 2);
  EXPECT_EQ(one.master_port, 2000);
  EXPECT_FALSE(first_->next().has_value()) << "notices of the last attempt are gone";
}

TEST_F(CoordinatorTest, ANodeThatGoesMeanwhileIsNamed) {
  start_two(options(2, 2));
  second_.reset();
  const Notice notice = await_notice(*first_);
  EXPECT_EQ(notice.kind, Notice::Kind::PeerNodeLost);
  EXPECT_EQ(notice.cause.node_rank, 1);
  EXPECT_EQ(notice.exit_code, 13);
}

TEST_F(CoordinatorTest, ADeadMasterIsNamed) {
  start_two(options(2, 2));
  const std::string place = coordinator_->endpoint().text();
  auto ended = std::async(std::launch::async, [&] { return await_notice(*second_); });
  first_.reset();  // the coordinator would wait for this node
  coordinator_.reset();
  const Notice notice = ended.get();
  EXPECT_EQ(notice.exit_code, 13);
}

TEST_F(CoordinatorTest, AWrongTokenIsNamedWithExitCode2) {
  start(options(2, 2));
  auto stranger = link(link_options(1), "another secret, also long enough");
  try {
    stranger->wait_for_assignment(0, -1);
    FAIL() << "it was let in";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("token mismatch"), std::string::npos) << error.what();
  }
}

TEST_F(CoordinatorTest, WrongOffersAreRefusedAndHarmNobody) {
  start(options(2, 2));
  first_ = link(link_options(0));
  const auto refused_with = [&](const NodeLinkOptions& wrong) -> std::string {
    auto node = link(wrong);
    try {
      node->wait_for_assignment(0, -1);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "it was let in";
  };
  std::this_thread::sleep_for(200ms);  // until the first node has joined
  NodeLinkOptions wrong = link_options(1);
  wrong.offer.max_nodes = wrong.offer.min_nodes = 3;
  EXPECT_NE(refused_with(wrong).find("--nnodes 3"), std::string::npos);
  wrong = link_options(1);
  wrong.offer.run_id = "another";
  EXPECT_NE(refused_with(wrong).find("run id `another`"), std::string::npos);
  EXPECT_NE(refused_with(link_options(0)).find("node rank 0 is already taken by host-0"),
            std::string::npos);
  EXPECT_NE(refused_with(link_options(5)).find("--node-rank 5"), std::string::npos);
  second_ = link(link_options(1));
  auto other = std::async(std::launch::async, [&] { return assigned(*second_, 1); });
  EXPECT_EQ(assigned(*first_, 1).world_size, 4);
  other.get();
  NodeLinkOptions late = link_options(-1);
  EXPECT_NE(refused_with(late).find("already has its 2 nodes"), std::string::npos);
}

TEST_F(CoordinatorTest, WaitingCanBeInterruptedAndGoneOnWith) {
  start(options(2, 2));
  first_ = link(link_options(0));
  const Pipe stop = make_pipe();
  ASSERT_EQ(::write(stop.write_end.get(), "x", 1), 1);
  EXPECT_EQ(first_->wait_for_assignment(1, stop.read_end.get()).kind,
            JoinOutcome::Kind::Interrupted);
  auto again = std::async(std::launch::async, [&] { return assigned(*first_, 7); });
  std::this_thread::sleep_for(100ms);
  second_ = link(link_options(1));
  assigned(*second_, 1);
  EXPECT_EQ(again.get().master_port, 7);
}

TEST_F(CoordinatorTest, AStopRequestReachesAllAndEndsIn75) {
  start_two(options(2, 2));
  first_->report_stop_request(SIGUSR1);
  const Notice notice = await_notice(*second_);
  EXPECT_EQ(notice.kind, Notice::Kind::StopRequested);
  EXPECT_EQ(notice.signal, SIGUSR1);
  first_->report_attempt_end({.exit_codes = {75, 75}, .progress = 4, .cause = {}});
  second_->report_attempt_end({.exit_codes = {75, 75}, .progress = 4, .cause = {}});
  EXPECT_EQ(first_->wait_for_assignment(0, -1).end.exit_code, 75);
  EXPECT_EQ(second_->wait_for_assignment(0, -1).end.exit_code, 75);
}

TEST_F(CoordinatorTest, L18_ANodeWhoseClockIsOffIsNamedOnceAndTheJobGoesOn) {
  constexpr int64_t kAhead_ns = 3'600'000'000'000;
  ::testing::internal::CaptureStderr();
  start(options(2, 2));
  first_ = link(link_options(0));
  NodeLinkOptions off = link_options(1);
  off.wall_clock = [] { return wall_clock_ns() + kAhead_ns; };
  second_ = link(off);
  auto other = std::async(std::launch::async, [&] { return assigned(*second_, 1001); });
  assigned(*first_, 1000);
  EXPECT_EQ(other.get().node_rank, 1);
  std::this_thread::sleep_for(500ms);  // as long as ten heartbeats
  for (NodeLink* const node : {first_.get(), second_.get()})
    node->report_attempt_end({.exit_codes = {0, 0}, .progress = {}, .cause = {}});
  EXPECT_EQ(first_->wait_for_assignment(0, -1).end.exit_code, 0);
  const std::string said = ::testing::internal::GetCapturedStderr();
  // A busy node 1 may answer before its rank is known, and its answer may take some milliseconds.
  const std::regex words(R"(the clock of (node 1 )?host-1 \(127\.0\.0\.1\) is (3599|3600)\.)");
  EXPECT_TRUE(std::regex_search(said, words)) << said;
  EXPECT_EQ(said.find("the clock of"), said.rfind("the clock of")) << said;
}

TEST_F(CoordinatorTest, ElasticJobsGrowWhenANodeComes) {
  start(options(1, 2));
  NodeLinkOptions any = link_options(-1);
  any.offer.min_nodes = 1;
  first_ = link(any);
  const Assignment alone = assigned(*first_, 1);
  EXPECT_EQ(alone.world_size, 2);
  second_ = link(any);
  auto other = std::async(std::launch::async, [&] { return assigned(*second_, 1); });
  EXPECT_EQ(await_notice(*first_).kind, Notice::Kind::StopForResize);
  first_->report_attempt_end({.exit_codes = {75, 75}, .progress = 4, .cause = {}});
  const Assignment grown = assigned(*first_, 1);
  EXPECT_EQ(grown.world_size, 4);
  EXPECT_EQ(grown.node_rank, 0) << "who was there keeps its rank";
  EXPECT_EQ(grown.attempt, 1);
  EXPECT_EQ(grown.restarts, 0);
  EXPECT_EQ(other.get().node_rank, 1);
}

// ---- cut connections

// Passes bytes between its port and the coordinator. cut() stops the existing connections, as a
// broken network does whose packets wait for retransmission; new connections still pass.
class Relay {
 public:
  explicit Relay(Endpoint target)
      : target_(std::move(target)), listener_(listen_on("127.0.0.1", 0)) {
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    stop_ = true;
    thread_.join();
  }
  Endpoint endpoint() const { return listener_.endpoint; }
  void cut() { cut_ = true; }
  void cut_new_ones_too() { refuse_ = true; }

 private:
  struct Pair {
    Descriptor near;
    Descriptor far;
    bool frozen = false;
  };

  static bool pass(const Descriptor& from, const Descriptor& to) {
    char bytes[4096];
    const ssize_t count = ::recv(from.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (count > 0) ::send(to.get(), bytes, static_cast<size_t>(count), MSG_NOSIGNAL);
    return count != 0;
  }

  void run() {
    while (!stop_) {
      Descriptor near(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (near.open() && !refuse_) {
        Descriptor far(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const SocketAddress address = resolve_host(target_.host, target_.port).addresses.front();
        if (::connect(far.get(), address.get(), address.size()) == 0)
          pairs_.push_back({std::move(near), std::move(far)});
      } else if (near.open()) {
        held_.push_back(std::move(near));
      }
      if (cut_.exchange(false))
        for (Pair& pair : pairs_) pair.frozen = true;
      std::erase_if(pairs_, [](const Pair& pair) {
        if (pair.frozen) return false;
        const bool alive = pass(pair.near, pair.far);
        return !pass(pair.far, pair.near) || !alive;
      });
      std::this_thread::sleep_for(1ms);
    }
  }

  Endpoint target_;
  BoundListener listener_;
  std::vector<Pair> pairs_;
  std::vector<Descriptor> held_;
  std::atomic<bool> cut_ = false;
  std::atomic<bool> refuse_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST_F(CoordinatorTest, ASecondConnectionBridgesAFirstOneThatHangs) {
  start(options(2, 2));
  Relay relay(coordinator_->endpoint());
  NodeLinkOptions through_relay = link_options(1);
  through_relay.coordinator = relay.endpoint();
  first_ = link(link_options(0));
  second_ = link(through_relay);
  auto other = std::async(std::launch::async, [&] { return assigned(*second_, 1); });
  assigned(*first_, 1);
  other.get();
  relay.cut();
  std::this_thread::sleep_for(2500ms);  // more than twice the limit of silence
  EXPECT_FALSE(first_->next().has_value());
  EXPECT_FALSE(second_->next().has_value());
  relay.cut_new_ones_too();
  relay.cut();
  const Notice lost = await_notice(*first_);
  EXPECT_EQ(lost.kind, Notice::Kind::PeerNodeLost);
  EXPECT_EQ(lost.cause.node_rank, 1);
  EXPECT_EQ(await_notice(*second_).kind, Notice::Kind::CoordinatorLost);
}

// ---- the open port

class Caller {
 public:
  explicit Caller(const Endpoint& endpoint)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const SocketAddress address = resolve_host(endpoint.host, endpoint.port).addresses.front();
    connected_ = ::connect(socket_.get(), address.get(), address.size()) == 0;
  }
  bool connected() const { return connected_; }
  void send(const std::string& bytes) const {
    [[maybe_unused]] const ssize_t sent =
        ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // Returns how many bytes come until the other side closes the connection, which it must do within
  // 3 s.
  size_t read_to_end() const {
    size_t total = 0;
    char bytes[256];
    pollfd watched{socket_.get(), POLLIN, 0};
    while (::poll(&watched, 1, 3'000) > 0) {
      const ssize_t count = ::recv(socket_.get(), bytes, sizeof(bytes), 0);
      if (count <= 0) return total;
      total += static_cast<size_t>(count);
    }
    return static_cast<size_t>(-1);
  }

 private:
  Descriptor socket_;
  bool connected_ = false;
};

int64_t resident_bytes() {
  int64_t pages = 0;
  int64_t resident = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  EXPECT_EQ(std::fscanf(file, "%ld %ld", &pages, &resident), 2);
  std::fclose(file);
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST_F(CoordinatorTest, NoiseAndSilenceAreDropped) {
  start_two(options(2, 2));
  const Caller noise(coordinator_->endpoint());
  noise.send(std::string(4096, '\x5a'));
  EXPECT_LE(noise.read_to_end(), 40U);
  const Caller silent(coordinator_->endpoint());
  EXPECT_EQ(silent.read_to_end(), 40U) << "the greeting, then the deadline";
  EXPECT_FALSE(first_->next().has_value());
  EXPECT_FALSE(second_->next().has_value());
}

TEST_F(CoordinatorTest, ManyIdleConnectionsAreBoundedAndTheJobGoesOn) {
  CoordinatorOptions with_limit = options(2, 2);
  with_limit.handshake_limit = 30s;
  start_two(with_limit);
  const int64_t before = resident_bytes();
  std::vector<std::unique_ptr<Caller>> callers;
  for (int caller = 0; caller < 600; ++caller)
    callers.push_back(std::make_unique<Caller>(coordinator_->endpoint()));
  KeyValueClient store({.store = parse_endpoint(first_assignment_.store_address, 0, "store"),
                        .run_id = "run",
                        .attempt = 0},
                       JobToken::from_secret(kSecret));
  store.set("key", "value");
  EXPECT_LT(resident_bytes() - before, 16 << 20);
  std::this_thread::sleep_for(1500ms);  // longer than the limit of silence
  EXPECT_FALSE(first_->next().has_value());
  EXPECT_FALSE(second_->next().has_value());
}

}  // namespace
}  // namespace convoy::rendezvous
