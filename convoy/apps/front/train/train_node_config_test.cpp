// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/train/train_node_config.h"

#include <gtest/gtest.h>

#include <utility>

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

  TrainStart start() const { return {.context = context_, .found = found_, .setup = setup_}; }
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

TEST_F(TrainNodeConfig, NodeZeroAndDryRunNeedTheFile) {
  setup_.wanted_node_rank = 0;
  EXPECT_THROW(read_node_config(start()), ConfigError);
  setup_.wanted_node_rank = 1;
  found_.flags.dry_run = true;
  EXPECT_THROW(read_node_config(start()), ConfigError);
}

}  // namespace
}  // namespace convoy::apps
