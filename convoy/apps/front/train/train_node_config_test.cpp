// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/train/train_node_config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "convoy/apps/front/train/train_config.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::apps {
namespace {

class TrainNodeConfig : public ::testing::Test {
 protected:
  TrainNodeConfig() {
    context_.common.quiet = true;
    setup_.nodes = {.least = 2, .most = 2};
    setup_.wanted_node_rank = 1;
    found_.rest = {(folder_.path() / "sums.yaml").string(), "train.output_dir=runs/a"};
  }

  // Reads the configuration of the command's words.
  TrainStart start() {
    found_.documents = settings::read_train_documents(config_sources(found_.rest, ""));
    return read_start();
  }
  TrainStart read_start() const { return {.context = context_, .found = found_, .setup = setup_}; }
  void write_file() const {
    write_file_atomic(folder_.path() / "sums.yaml",
                      "model: {name: some-model}\ndata: {train_path: rows.jsonl}\n");
  }

  testing::TemporaryFolder folder_;
  Context context_;
  TrainInvocation found_;
  launch::JobSetup setup_;
};

TEST_F(TrainNodeConfig, ValuesAndOriginsMoveTogether) {
  write_file();
  NodeConfig config = read_node_config(start());
  EXPECT_TRUE(config.is_here);
  EXPECT_EQ(config.train->model.name, "some-model");
  EXPECT_EQ(config.train->run_name, "sums");
  EXPECT_EQ(config.resolved.value("run_name").origin, "decided: name of the config file");
  const NodeConfig moved = std::move(config);
  moved.train->run_name = "renamed";
  EXPECT_NE(moved.resolved.yaml().find("run_name: renamed"), std::string::npos);
}

TEST_F(TrainNodeConfig, NodeWithoutTheFileReadsItsOwnWords) {
  const NodeConfig config = read_node_config(start());
  EXPECT_FALSE(config.is_here);
  EXPECT_EQ(config.train->train.output_dir, "runs/a");
  EXPECT_EQ(config.train->run_name, "sums");
  EXPECT_THROW(read_own_config(start()), ConfigError);
}

TEST_F(TrainNodeConfig, EachFileIsReadOnce) {
  const std::string peers = (folder_.path() / "ds.json").string();
  write_file_atomic(peers, R"({"train_batch_size": 32})");
  write_file();
  found_ = read_train_line(context_, {found_.rest.front(), "--deepspeed", peers});
  std::filesystem::remove(peers);
  std::filesystem::remove(found_.rest.front());
  setup_.nodes = {};
  for (const auto& [ranks, rows] : {std::pair(2, 16), std::pair(4, 8)}) {
    setup_.num_local_ranks = ranks;
    const NodeConfig config = read_node_config(read_start());
    EXPECT_EQ(config.train->model.name, "some-model");
    EXPECT_EQ(config.train->train.batch_rows(), rows);
    EXPECT_EQ(config.resolved.value("train.batch_size").origin, peers + ":1");
    EXPECT_NO_THROW(check_launch_settings(read_start()));
  }
}

// The node learns only during the rendezvous that it has rank 0.
TEST_F(TrainNodeConfig, NodeThatWaitedSaysWhatItLacksWithItsOtherErrors) {
  found_.rest.push_back("train.batch_size=4");
  EXPECT_FALSE(read_node_config(start()).is_here);
  write_file();
  try {
    read_own_config(read_start());
    FAIL() << "the file was not here when the command was read";
  } catch (const ConfigError& error) {
    EXPECT_NE(error.sentence().find("sums.yaml"), std::string::npos) << error.sentence();
  }
  found_.rest.push_back("train.batch_sze=4");
  std::filesystem::remove(found_.rest.front());
  EXPECT_THROW(read_node_config(start()), ConfigError);
  try {
    read_own_config(read_start());
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(error.sentence().find("sums.yaml"), std::string::npos) << error.sentence();
    EXPECT_NE(error.sentence().find("2 errors"), std::string::npos) << error.sentence();
  }
}

TEST_F(TrainNodeConfig, NodeZeroAndDryRunNeedTheFile) {
  setup_.wanted_node_rank = 0;
  EXPECT_THROW(read_node_config(start()), ConfigError);
  setup_.wanted_node_rank = 1;
  found_.flags.dry_run = true;
  EXPECT_THROW(read_node_config(start()), ConfigError);
}

}  // namespace
}  // namespace convoy::apps
