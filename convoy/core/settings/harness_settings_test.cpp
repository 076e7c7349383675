// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/harness_settings.h"

#include <gtest/gtest.h>

#include "convoy/core/settings/errors_of_settings_test.h"

namespace convoy::settings {
namespace {

TEST(HarnessSettings, RefuseWhatNothingWouldRead) {
  EXPECT_EQ(errors_of({"eval.tasks=[arc_easy,gsm8k]", "eval.tasks_rows=10", "eval.num_fewshot=0"}),
            "");
  EXPECT_EQ(errors_of({"task=grpo", "reward=[{kind: answer}]", "eval.tasks=[gsm8k]"}), "");
  for (const auto& [given, said] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"eval.tasks_rows=10"}, "eval.tasks_rows: no tasks are measured"},
           {{"eval.tasks=[gsm8k]", "eval.num_fewshot=-2"}, "eval.num_fewshot"},
           {{"eval.tasks=[gsm8k]", "task=classify"}, "task classify does not measure them"},
           {{"eval.tasks=[gsm8k]", "task=rejection"}, "task rejection does not measure them"},
           {{"eval.tasks=[gsm8k]", "train.export_model=false"}, "there is no model to measure"}})
    EXPECT_NE(errors_of(given).find(said), std::string::npos) << said << ": " << errors_of(given);
}

}  // namespace
}  // namespace convoy::settings
