// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/check_rejection.h"

#include <gtest/gtest.h>

#include "convoy/core/settings/errors_of_settings_test.h"

namespace convoy::settings {
namespace {

void expect_refused(const std::vector<std::string>& words, const std::string& text) {
  const std::string errors = errors_of(words);
  EXPECT_NE(errors.find(text), std::string::npos) << words.back() << ": " << errors;
}

TEST(RejectionSettings, AreReadByTheirTaskAlone) {
  EXPECT_EQ(errors_of({"task=rejection", "rejection.rounds=5", "rejection.from=last"}), "");
  EXPECT_EQ(errors_of({"task=rejection", "train.eval_strategy=no", "train.final_eval=false",
                       "data.split.val_ratio=0"}),
            "");
  expect_refused({"rejection.samples=4"}, "rejection.samples applies only to task rejection");
  expect_refused({"task=dpo", "rejection.keep=1"},
                 "applies only to task rejection, found task dpo");
  expect_refused({"task=rejection", "preference.beta=0.5"}, "applies only to task dpo");
  expect_refused({"task=rejection", "datasets=[{path: a, type: chat, weight: 1}]"},
                 "datasets apply only to task mixed");
}

TEST(RejectionSettings, KeysThatNoRoundReadsAreRefusedByName) {
  for (const char* const word :
       {"train.eval_steps=10", "train.eval_strategy=epoch", "train.early_stopping_patience=2",
        "train.metric_for_best_model=rougeL", "train.predict_with_generate=true",
        "data.split.val_ratio=0.2", "data.test_path=t.jsonl", "data.schema=messages",
        "train.export_model=false", "tuning.quantization.skip_modules=[lm_head]",
        "data.bad_rows=replace", "train.resume_from_checkpoint=runs/a/checkpoints/last"})
    expect_refused({"task=rejection", word},
                   std::string(word).substr(0, std::string(word).find('=')));
}

TEST(RejectionSettings, ASolutionLeavesRoomForItsProblem) {
  expect_refused({"task=rejection", "rejection.max_tokens=512"}, "leave no room");
  EXPECT_EQ(errors_of({"task=rejection", "rejection.max_tokens=512", "model.max_seq_len=1024"}),
            "");
  expect_refused({"task=rejection", "rejection.temperature=0"}, "one and the same");
  EXPECT_EQ(errors_of({"task=rejection", "rejection.temperature=0", "rejection.samples=1"}), "");
}

TEST(RejectionSettings, ProblemsForEvaluationsAreNeeded) {
  const std::string errors =
      errors_of({"task=rejection", "model.name=m", "data.train_path=p.jsonl"}, Wanted::TrainInputs);
  EXPECT_NE(errors.find("data.val_path is not set"), std::string::npos) << errors;
}

}  // namespace
}  // namespace convoy::settings
