// SPDX-License-Identifier: Apache-2.0
//
// Tests the messages to a node that joins a run before, during and after it.
#include "convoy/apps/front/process/process_folder_nodes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::apps {
namespace {

using nlohmann::json;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

class FolderNodesTest : public ::testing::Test {
 protected:
  // The node has its own store, so no server is started.
  std::unique_ptr<FolderNodes> node(int64_t rank) const {
    settings::WorkerSettings workers;
    workers.num_nodes = 2;
    workers.node_rank = rank;
    workers.store = "ledger.db";
    return std::make_unique<FolderNodes>(workers, folder_.path(), Log());
  }
  void share(const FolderNodes& zero) const {
    zero.share({.store = "ledger.db", .configuration = ours_, .data_hash = "d", .selection = {}});
  }
  // Lets the second node wait while `then` runs. Returns the run that it joins, and stores its
  // messages in `said_`.
  std::optional<SharedRun> joins_after(const std::function<void()>& then) {
    const auto one = node(1);
    CaptureStderr();
    auto joined = std::async(std::launch::async, [&] { return one->wait_for_share(ours_); });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    then();
    const std::optional<SharedRun> run = joined.get();
    said_ = GetCapturedStderr();
    return run;
  }
  void expect_said(const std::string& words) const {
    EXPECT_NE(said_.find(words), std::string::npos) << said_;
  }

  testing::TemporaryFolder folder_;
  json ours_ = {{"seed", 42}};
  std::string said_;
};

TEST_F(FolderNodesTest, ANodeWithoutTheSharedFolderIsToldWhatToDo) {
  std::unique_ptr<FolderNodes> zero;
  const auto run = joins_after([&] {
    zero = node(0);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    share(*zero);
  });
  ASSERT_TRUE(run);
  EXPECT_EQ(run->data_hash, "d");
  expect_said("it has written nothing to " + folder_.path().string());
  expect_said("give every node --run-dir with a folder that all of them see");
  expect_said("it is planning the rows");
}

TEST_F(FolderNodesTest, ANodeBesideTheRunOfOneNodeIsToldSo) {
  write_file_atomic(folder_.path() / "config.yaml", "{}");
  std::unique_ptr<FolderNodes> zero;
  joins_after([&] {
    zero = node(0);
    share(*zero);
  });
  expect_said("was started as the run of one node. Stop it, and start node 0 with the same number");
}

TEST_F(FolderNodesTest, ANodeThatComesAfterTheEndIsToldSo) {
  {
    const auto zero = node(0);
    share(*zero);
    zero->finish(ours_);
  }
  EXPECT_FALSE(joins_after([] {}));
  expect_said("the run in " + folder_.path().string() + " has ended");
}

TEST_F(FolderNodesTest, ANodeWaitsForARunThatWasStopped) {
  share(*node(0));  // the node ended without finish()
  std::unique_ptr<FolderNodes> zero;
  EXPECT_TRUE(joins_after([&] {
    zero = node(0);
    share(*zero);
  }));
  expect_said("it was stopped; the same command starts it again");
}

TEST_F(FolderNodesTest, AnotherConfigurationIsNotJoined) {
  const auto other = node(0);
  other->share(
      {.store = "ledger.db", .configuration = {{"seed", 1}}, .data_hash = "x", .selection = {}});
  std::unique_ptr<FolderNodes> zero;
  const auto run = joins_after([&] {
    zero = node(0);
    share(*zero);
  });
  ASSERT_TRUE(run);
  EXPECT_EQ(run->data_hash, "d");
  expect_said("has another configuration");
}

}  // namespace
}  // namespace convoy::apps
