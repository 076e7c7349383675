// SPDX-License-Identifier: Apache-2.0
//
// Two nodes share no folder: each has its own rows, configuration and run folder. Here they are two
// launchers of this machine with separate folders; tests/hosts runs the same on separate hosts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include "convoy/core/base/files.h"
#include "ports/free_port.h"
#include "resume/train_process.h"

namespace convoy::testing {
namespace {

namespace fs = std::filesystem;

class SeparateFolders : public ::testing::Test {
 protected:
  Settings of_node(int node, Settings settings = {}) const {
    settings.insert(settings.end(),
                    {"--nnodes", "2", "--node-rank", std::to_string(node), "--rdzv-endpoint",
                     fmt::format("127.0.0.1:{}", port_), "--rdzv-conf", "join_timeout=60"});
    return settings;
  }
  TrainProcess start_a(const Settings& settings = {}) const {
    return a_.start("run", of_node(0, settings));
  }
  TrainProcess start_b(const Settings& settings = {}) const {
    return b_.start("run", of_node(1, settings));
  }
  void expect_both_end(int status, const std::string& words, const Settings& settings_a = {},
                       const Settings& settings_b = {}) const {
    TrainProcess a = start_a(settings_a);
    TrainProcess b = start_b(settings_b);
    for (TrainProcess* const node : {&a, &b}) {
      const Ended ended = node->wait();
      EXPECT_EQ(ended.status, status) << ended.errors;
      EXPECT_NE(ended.errors.find(words), std::string::npos) << ended.errors;
    }
  }
  // Expects the result of the same ranks on one node, which `a` has trained as "unbroken".
  void expect_result_of_one_node() const {
    expect_same_result(a_, "unbroken", "run");
    for (const char* name : {"checkpoints", "adapter", "events.jsonl"}) {
      EXPECT_TRUE(fs::exists(a_.run_folder("run") / name)) << name;
      EXPECT_FALSE(fs::exists(b_.run_folder("run") / name)) << name;
    }
    EXPECT_TRUE(fs::exists(b_.run_folder("run") / "logs/rank-01.log"));
  }

  const TrainFixture a_;
  const TrainFixture b_;
  const int port_ = free_port();
};

TEST_F(SeparateFolders, TrainAsOneNodeDoesAndGoOnAfterAStop) {
  ASSERT_EQ(a_.run("unbroken", {"--nproc", "2", "train.epochs=6"}).status, 0);
  {
    TrainProcess a = start_a({"train.epochs=6"});
    TrainProcess b = start_b({"train.epochs=6"});
    ASSERT_TRUE(a.wait_until([&] { return a_.has_event("run", "step", 4); }));
    b.signal(SIGTERM);
    const Ended stopped_a = a.wait();
    EXPECT_EQ(stopped_a.status, 75) << stopped_a.errors;
    const Ended stopped_b = b.wait();
    EXPECT_EQ(stopped_b.status, 75) << stopped_b.errors;
  }
  EXPECT_LT(a_.losses("run").size(), a_.losses("unbroken").size());
  TrainProcess a = start_a({"train.epochs=6"});
  TrainProcess b = start_b({"train.epochs=6"});
  const Ended ended_a = a.wait();
  EXPECT_EQ(ended_a.status, 0) << ended_a.errors;
  EXPECT_NE(ended_a.errors.find("resuming at step"), std::string::npos) << ended_a.errors;
  const Ended ended_b = b.wait();
  EXPECT_EQ(ended_b.status, 0) << ended_b.errors;
  expect_result_of_one_node();
}

TEST_F(SeparateFolders, NodeWithoutTheConfigurationTakesThatOfRankZero) {
  ASSERT_EQ(a_.run("unbroken", {"--nproc", "2", "train.epochs=1"}).status, 0);
  TrainProcess a = start_a({"train.epochs=1"});
  Settings words = {"train", "not-here.yaml", "data.train_path=" + b_.rows().string(),
                    "--output-dir", b_.run_folder("run").string()};
  for (const std::string& word : of_node(1)) words.push_back(word);
  TrainProcess b(words, b_.run_folder("errors"));
  const Ended ended_a = a.wait();
  EXPECT_EQ(ended_a.status, 0) << ended_a.errors;
  const Ended ended_b = b.wait();
  EXPECT_EQ(ended_b.status, 0) << ended_b.errors;
  EXPECT_NE(ended_b.errors.find("rank 0's node sends its own"), std::string::npos)
      << ended_b.errors;
  expect_result_of_one_node();
}

TEST_F(SeparateFolders, OtherRowsUnderTheSameNameAreRefused) {
  write_file_atomic(b_.rows(),
                    read_file(a_.rows()) + "{\"prompt\": \"1 + 1 =\", \"completion\": \" 3\"}\n");
  expect_both_end(10, "the train rows of rank 1 on ");
}

TEST_F(SeparateFolders, RowsThatANodeLacksAreNamedAtOnce) {
  fs::remove(b_.rows());
  expect_both_end(10, "data.train_path is not on every node: rank 1 on ");
}

TEST_F(SeparateFolders, OtherSettingsAreRefusedByName) {
  expect_both_end(2, "train.learning_rate is 0.002 for rank 0 on ", {},
                  {"train.learning_rate=1e-3"});
}

// Changes a byte in the middle of the weights; the names, sizes and ends of the files are
// unchanged.
TEST_F(SeparateFolders, OtherWeightsUnderTheSameNameAreRefused) {
  const fs::path model = fs::path(std::getenv("CONVOY_SOURCE_DIR")) / "examples/tally-3m";
  const fs::path copy = b_.run_folder("model");
  fs::copy(model, copy, fs::copy_options::recursive);
  std::string weights = read_file(model / "model.safetensors");
  weights[weights.size() / 2] ^= 1;
  write_file_atomic(copy / "model.safetensors", weights);
  expect_both_end(10, "the weights of rank 1 on ", {}, {"model.name=" + copy.string()});
}

TEST_F(SeparateFolders, NewerCheckpointThanThatOfRankZeroIsNotPassedOver) {
  ASSERT_EQ(b_.run("run", {"--nproc", "2", "train.epochs=1"}).status, 0);
  expect_both_end(11, "rank 1 on ");
}

}  // namespace
}  // namespace convoy::testing
