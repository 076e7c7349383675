// SPDX-License-Identifier: Apache-2.0
//
// Tests the ranks' key-value store: the table alone, and clients over loopback.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/launch/rendezvous/coordinator.h"
#include "convoy/launch/rendezvous/key_value_client.h"
#include "convoy/launch/rendezvous/key_value_table.h"
#include "convoy/launch/rendezvous/node_link.h"

namespace convoy::rendezvous {
namespace {

using namespace std::chrono_literals;

Frame request(const char* type, const std::string& key, const std::string& rest = {}) {
  return {{{"type", type}, {"key_bytes", {key.size()}}, {"timeout_ms", 1000}}, key + rest};
}

TEST(KeyValueTable, AWaiterHearsWhenItsKeyComesOrTheTimeIsUp) {
  KeyValueTable table(1 << 20);
  const KeyValueTable::TimePoint now{1000s};
  table.handle(1, request("get", "a"), now);
  table.handle(2, request("get", "b"), now);
  EXPECT_TRUE(table.take_answers().empty());
  table.handle(3, request("set", "a", "value"), now);
  const auto answers = table.take_answers();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].to, 1U);
  EXPECT_EQ(*answers[0].payload, "value");
  table.expire(now + 1s);
  const auto late = table.take_answers();
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late[0].to, 2U);
  EXPECT_EQ(late[0].head["kind"], "timeout");
}

TEST(KeyValueTable, TheLimitOfAllBytesHolds) {
  KeyValueTable table(1000);
  table.handle(1, request("set", "a", std::string(500, 'x')), {});
  table.handle(1, request("set", "b", std::string(500, 'x')), {});
  table.handle(1, request("set", "a", std::string(600, 'x')), {});
  const auto answers = table.take_answers();
  EXPECT_EQ(answers[0].head["type"], "ok");
  EXPECT_EQ(answers[1].head["kind"], "limit");
  EXPECT_EQ(answers[2].head["type"], "ok");
  table.handle(1, request("remove", "a"), {});
  EXPECT_EQ(table.num_bytes(), 0);
}

TEST(KeyValueTable, NonsenseIsRefused) {
  KeyValueTable table(1000);
  EXPECT_THROW(table.handle(1, request("steal", "a"), {}), CommError);
  EXPECT_THROW(table.handle(1, {{{"type", "set"}}, ""}, {}), CommError);
  EXPECT_THROW(table.handle(1, {{{"type", "set"}, {"key_bytes", {9}}}, "short"}, {}), CommError);
  EXPECT_THROW(table.handle(1, {{{"type", "set"}, {"key_bytes", {-1}}}, "a"}, {}), CommError);
  EXPECT_THROW(table.handle(1, {{{"type", "set"}, {"key_bytes", "a"}}, "a"}, {}), CommError);
}

// put() counts down the waiters of its key, so a refused wait must not be counted among them.
TEST(KeyValueTable, ARefusedWaitLeavesNothingBehind) {
  KeyValueTable table(1000);
  EXPECT_THROW(table.handle(1, {{{"type", "wait"}, {"key_bytes", {1}}}, "a"}, {}), CommError);
  table.forget(1);
  table.handle(2, request("set", "a", "value"), {});
  const auto answers = table.take_answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].to, 2U);
  EXPECT_EQ(answers[0].head["type"], "ok");
}

class KeyValueTest : public ::testing::Test {
 protected:
  KeyValueTest() : token_(JobToken::from_secret("a secret of sixteen or more")) {
    CoordinatorOptions options;
    options.heartbeat = 20ms;
    options.restarts.max_restarts = 1;
    coordinator_ = std::make_unique<Coordinator>(options, token_, listen_on("127.0.0.1", 0));
  }

  std::unique_ptr<KeyValueClient> client(int attempt = 0) {
    return std::make_unique<KeyValueClient>(
        KeyValueOptions{.store = coordinator_->endpoint(), .run_id = "none", .attempt = attempt},
        token_);
  }

  JobToken token_;
  std::unique_ptr<Coordinator> coordinator_;
};

TEST_F(KeyValueTest, EveryCallDoesWhatItSays) {
  const auto store = client();
  store->set("a", std::string("\0\xff\n", 3));
  EXPECT_EQ(store->get("a", 1s), std::string("\0\xff\n", 3));
  EXPECT_TRUE(store->check({"a"}));
  EXPECT_FALSE(store->check({"a", "b"}));
  EXPECT_EQ(store->add("n", 5), 5);
  EXPECT_EQ(store->add("n", -7), -2);
  EXPECT_EQ(store->get("n", 1s), "-2");
  EXPECT_THROW(store->add("a", 1), CommError);
  EXPECT_EQ(store->compare_set("c", "x", "y"), "x");
  EXPECT_EQ(store->compare_set("c", "", "1"), "1");
  EXPECT_EQ(store->compare_set("c", "0", "2"), "1");
  EXPECT_EQ(store->compare_set("c", "1", "2"), "2");
  EXPECT_EQ(store->num_keys(), 3);
  EXPECT_TRUE(store->remove("c"));
  EXPECT_FALSE(store->remove("c"));
  store->wait({"a", "n"}, 1s);
  EXPECT_THROW(store->get("never", 50ms), CommError);
  EXPECT_EQ(store->get("a", 1s).size(), 3U) << "usable after a timeout";
}

TEST_F(KeyValueTest, AWaitEndsWhenTheLastKeyComes) {
  auto waiting = std::async(std::launch::async, [&] {
    const auto store = client();
    store->wait({"x", "y", "x"}, 10s);
    return store->get("y", 1s);
  });
  const auto store = client();
  store->set("x", "1");
  EXPECT_EQ(waiting.wait_for(100ms), std::future_status::timeout);
  store->set("y", "2");
  EXPECT_EQ(waiting.get(), "2");
}

TEST_F(KeyValueTest, LargeValuesPassAndTooLargeOnesAreRefused) {
  const auto store = client();
  std::string large(8 << 20, 'x');
  large[12345] = 'y';
  store->set("large", large);
  EXPECT_TRUE(store->get("large", 5s) == large);
  EXPECT_THROW(store->set("larger", std::string(KeyValueClient::kMaxValueBytes + 1, 'x')),
               CommError);
}

TEST_F(KeyValueTest, ManyThreadsShareAClient) {
  const auto store = client();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int call = 0; call < 50; ++call) store->add("sum", 1);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->get("sum", 1s), "200");
}

TEST_F(KeyValueTest, KeysOfTheLastAttemptAreNeverRead) {
  NodeLinkOptions options;
  options.coordinator = coordinator_->endpoint();
  options.heartbeat = 20ms;
  NodeLink link(options, token_);
  ASSERT_EQ(link.wait_for_assignment(1, -1).kind, JoinOutcome::Kind::Assigned);
  const auto old = client(0);
  old->set("key", "of attempt 0");
  auto waiting = std::async(std::launch::async, [&] { client(0)->get("never", 60s); });
  std::this_thread::sleep_for(50ms);
  FailureCause cause;
  cause.exit_code = 1;
  link.report_attempt_end({.exit_codes = {1}, .progress = {}, .cause = cause});
  ASSERT_EQ(link.wait_for_assignment(1, -1).assignment.attempt, 1);
  EXPECT_THROW(waiting.get(), CommError) << "who waits hears that the attempt is over";
  EXPECT_THROW(old->get("key", 1s), CommError);
  EXPECT_THROW(old->set("key", "late"), CommError);
  const auto fresh = client(1);
  EXPECT_FALSE(fresh->check({"key"}));
}

TEST_F(KeyValueTest, WrongTokensAndRunIdsAreNamed) {
  KeyValueOptions options{.store = coordinator_->endpoint(), .run_id = "another"};
  EXPECT_THROW(KeyValueClient(options, token_), ConfigError);
  EXPECT_THROW(KeyValueClient(options, JobToken::from_secret("another secret, long enough")),
               ConfigError);
}

TEST_F(KeyValueTest, AStoreThatIsGoneIsNoticedAtOnce) {
  const auto store = client();
  auto waiting = std::async(std::launch::async, [&] { store->get("never", 60s); });
  std::this_thread::sleep_for(50ms);
  coordinator_.reset();
  EXPECT_THROW(waiting.get(), CommError);
}

}  // namespace
}  // namespace convoy::rendezvous
