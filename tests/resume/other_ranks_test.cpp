// SPDX-License-Identifier: Apache-2.0
//
// A run that continues with another number of ranks has the same rows in each step, and the same
// losses except for the order of sums.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>

#include "ports/free_port.h"
#include "resume/train_process.h"

namespace convoy::testing {
namespace {

void expect_same_losses(const TrainFixture& fixture, const std::string& expected,
                        const std::string& found) {
  const std::map<int64_t, double> wanted = fixture.losses(expected);
  const std::map<int64_t, double> losses = fixture.losses(found);
  ASSERT_EQ(wanted.size(), losses.size());
  for (const auto& [step, loss] : wanted)
    EXPECT_NEAR(losses.at(step), loss, 2e-5 * std::max(1.0, loss)) << "step " << step;
}

TEST(OtherRanks, AStoppedRunGoesOnOnFewerAndMore) {
  const TrainFixture fixture;
  ASSERT_EQ(fixture.run("unbroken", {"--nproc", "2", "train.epochs=6"}).status, 0);
  int64_t stop_after = 4;
  for (const char* ranks : {"2", "1", "4"}) {
    TrainProcess process = fixture.start("run", {"--nproc", ranks, "train.epochs=6"});
    ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("run", "step", stop_after); }));
    process.signal(SIGTERM);
    const Ended stopped = process.wait();
    ASSERT_EQ(stopped.status, 75) << stopped.errors;
    stop_after = fixture.losses("run").rbegin()->first + 3;
  }
  const Ended ended = fixture.run("run", {"--nproc", "1", "train.epochs=6"});
  ASSERT_EQ(ended.status, 0) << ended.errors;
  EXPECT_NE(ended.errors.find("2 rows per rank x 1 rank x 4 accumulation = 8 a step"),
            std::string::npos)
      << ended.errors;
  expect_same_losses(fixture, "unbroken", "run");
}

TEST(OtherRanks, AnotherBatchIsRefused) {
  const TrainFixture fixture;
  ASSERT_EQ(fixture.run("run", {"--nproc", "2"}).status, 0);
  for (const char* setting : {"train.batch_size=1", "train.grad_accum=1"}) {
    const Ended ended = fixture.run("run", {"--nproc", "2", "train.epochs=6", setting});
    EXPECT_EQ(ended.status, 2) << ended.errors;
    EXPECT_NE(ended.errors.find("--force-stamp global_batch"), std::string::npos) << ended.errors;
  }
  const Settings forced = {"--nproc",       "2",           "train.epochs=6", "train.grad_accum=1",
                           "--force-stamp", "global_batch"};
  const Ended ended = fixture.run("run", forced);
  EXPECT_EQ(ended.status, 0) << ended.errors;
  EXPECT_NE(ended.errors.find("2 ranks x 1 accumulation = 4 a step"), std::string::npos)
      << ended.errors;
}

// The batch of an elastic job counts all its nodes, whether they are present or not.
TEST(OtherRanks, NodesOfAnElasticJobComeAndGo) {
  const TrainFixture fixture;
  const Settings length = {"train.epochs=60", "train.save_steps=50"};
  Settings whole = length;
  whole.insert(whole.end(), {"--nproc", "2"});
  ASSERT_EQ(fixture.run("unbroken", whole).status, 0);

  Settings node = length;
  node.insert(node.end(),
              {"--nnodes", "1:2", "--rdzv-endpoint", fmt::format("127.0.0.1:{}", free_port()),
               "--rdzv-conf", "last_call_timeout=1,join_timeout=60"});
  TrainProcess first = fixture.start("run", node);
  ASSERT_TRUE(first.wait_until([&] { return fixture.has_event("run", "step", 10); }));
  TrainProcess second = fixture.start("run", node);
  ASSERT_TRUE(first.wait_until([&] { return fixture.num_events("run", "start") == 2; }));
  const int64_t joined_after = fixture.losses("run").rbegin()->first;
  ASSERT_TRUE(
      first.wait_until([&] { return fixture.has_event("run", "step", joined_after + 10); }));
  second.signal(SIGTERM);
  const Ended left = second.wait();
  EXPECT_EQ(left.status, 75) << left.errors;
  const Ended ended = first.wait();
  ASSERT_EQ(ended.status, 0) << ended.errors;
  EXPECT_EQ(fixture.num_events("run", "start"), 3);
  expect_same_losses(fixture, "unbroken", "run");
}

}  // namespace
}  // namespace convoy::testing
