// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/runs/run_rollouts.h"

#include <gtest/gtest.h>

#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::telemetry {
namespace {

TEST(RunRollouts, NamesTheBestTheWorstAndTheLongestTextsOfAStep) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path run = folder.path();
  EXPECT_TRUE(rollout_steps(run).empty());
  write_file_atomic(run / "rollouts/step-12.jsonl", "{}\n");
  write_file_atomic(run / "rollouts/step-3-0123.texts.partial/rank-0-0", "key\n");
  write_file_atomic(run / "rollouts/step-3.jsonl",
                    R"({"text": "a", "reward": 0.5, "logprobs": [-1, -2], "tokens": [1, 2, 3]})"
                    "\n"
                    R"({"text": "b", "reward": -1, "logprobs": [-1]})"
                    "\nno row\n"
                    R"({"text": "c", "reward": 1.5, "logprobs": [-1, -1, -1, -1], "weights": "0f"})"
                    "\n");
  EXPECT_EQ(rollout_steps(run), (std::vector<int64_t>{3, 12}));
  const std::vector<nlohmann::ordered_json> notable = notable_rollouts(run, 3, 1);
  ASSERT_EQ(notable.size(), 3u);
  EXPECT_EQ(notable[0].dump(), R"({"shown_as":"best","text":"c","reward":1.5,"text_tokens":4})");
  EXPECT_EQ(notable[1].dump(), R"({"shown_as":"worst","text":"b","reward":-1,"text_tokens":1})");
  EXPECT_EQ(notable[2]["text"], "c");
  EXPECT_EQ(notable_rollouts(run, 3, 2)[5]["text"], "a");
  EXPECT_TRUE(notable_rollouts(run, 4, 1).empty());
}

}  // namespace
}  // namespace convoy::telemetry
