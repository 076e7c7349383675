// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/check_distill.h"

#include <gtest/gtest.h>

#include "convoy/core/settings/errors_of_settings_test.h"

namespace convoy::settings {
namespace {

TEST(DistillSettings, RefuseWhatTheyWouldIgnoreByName) {
  const auto refused = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"task=distill", "distill.teacher=teacher"});
    return errors_of(std::move(more));
  };
  EXPECT_EQ(refused({}), "");
  EXPECT_EQ(refused({"rollout.samples=1", "rollout.temperature=0.7", "distill.temperature=2"}), "");
  EXPECT_EQ(refused({"distill.divergence=js", "distill.beta=0.1", "distill.top_k=20"}), "");
  EXPECT_EQ(refused({"reward=[{kind: answer}]", "train.metric_for_best_model=eval_accuracy"}), "");
  EXPECT_EQ(refused({"lmbda=1.0", "seq_kd=false", "loss_add_tail=true"}), "");
  for (const auto& [given, said] : std::vector<std::pair<std::string, std::string>>{
           {"distill.teacher=", "no teacher is named"},
           {"distill.divergence=kl", "forward_kl, reverse_kl, js"},
           {"distill.beta=0.3", "divergence reverse_kl has no mixture"},
           {"train.packing=true", "train.packing: task distill"},
           {"tuning.lora.dropout=0.3", "tuning.lora.dropout: task distill"},
           {"generation.temperature=1", "generation.temperature: task distill"},
           {"rollout.max_new_tokens=100000", "leave no room for its problem"},
           {"train.batch_size=auto", "train.batch_size: task distill"},
           {"reward=[{kind: anser}]", "answer"},
           {"policy.kl_beta=0.1", "policy.kl_beta applies only to task grpo, found task distill"},
           {"rejection.samples=3", "rejection.samples applies only to task rejection"}})
    EXPECT_NE(refused({given}).find(said), std::string::npos) << given << ": " << refused({given});
  for (const double beta : {1.0, 1.5})
    EXPECT_NE(refused({"distill.divergence=js", fmt::format("distill.beta={}", beta)})
                  .find("wanted above 0 and below 1"),
              std::string::npos);
  for (const std::string loss : {"dapo", "grpo"}) {
    EXPECT_NE(refused({"train.loss=" + loss}).find("applies only to task grpo, found task distill"),
              std::string::npos)
        << loss << ": " << refused({"train.loss=" + loss});
    EXPECT_NE(errors_of({"task=sft", "train.loss=" + loss})
                  .find("applies only to task grpo, found task sft"),
              std::string::npos)
        << loss;
  }
  EXPECT_EQ(refused({"policy.loss=dapo"}), "") << "as the record of a run has it";
  for (const char* key : {"distill.teacher=a", "distill.top_k=4"})
    EXPECT_NE(errors_of({key}).find("applies only to task distill"), std::string::npos) << key;
  EXPECT_NE(errors_of({"task=grpo", "reward=[{kind: answer}]", "rollout.samples=1"})
                .find("compared with others of its problem"),
            std::string::npos);
}

TEST(DistillSettings, OfAServerNeedWhatItGives) {
  const auto refused = [](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"task=distill", "distill.teacher=big", "distill.engine=http://gpu1:8000/v1"});
    return errors_of(std::move(more));
  };
  EXPECT_EQ(refused({"distill.top_k=20"}), "");
  EXPECT_EQ(refused({"distill.top_k=5", "distill.engine_timeout=60", "distill.divergence=js"}), "");
  for (const auto& [given, said] : std::vector<std::pair<std::string, std::string>>{
           {"distill.beta=0.5", "a server gives its likeliest tokens, not the whole vocabulary"},
           {"distill.temperature=2", "a server gives probabilities at temperature 1, found 2"},
           {"distill.teacher=", "distill.teacher=NAME, as the server calls it"},
           {"distill.engine_timeout=0", "distill.engine_timeout"}})
    EXPECT_NE(refused({given}).find(said), std::string::npos) << given << ": " << refused({given});
  EXPECT_NE(errors_of({"task=distill", "distill.teacher=folder", "distill.engine_timeout=60"})
                .find("distill.engine_timeout: task distill: no server is asked"),
            std::string::npos);
}

TEST(DistillSettings, AnswerKeysOfOtherTrainers) {
  for (const auto& [given, said] : std::vector<std::pair<std::string, std::string>>{
           {"teacher_model_name_or_path=a", "distill.teacher"},
           {"train.teacher_model_name_or_path=a", "distill.teacher"},
           {"distill.teacher_model=a", "distill.teacher"},
           {"loss_top_k=4", "distill.top_k"},
           {"beta=1", "of task distill distill.divergence"},
           {"lmbda=0.5", "every text is the model's own"},
           {"seq_kd=true", "every text is the model's own"},
           {"loss_add_tail=false", "tokens beyond distill.top_k count as one"},
           {"reverse_kl_top_1_mode=argmax", "the teacher's distill.top_k tokens"},
           {"teacher_model_server_url=x", "distill.engine"},
           {"use_teacher_server=true", "name the server: distill.engine"},
           {"teacher_model_revision=x", "its name at a server"},
           {"train.num_generations=4", "of tasks grpo and distill it is rollout.samples"},
           {"train.loss_type=jsd", "of task distill distill.divergence"},
           {"train.beta=0.5", "of task distill distill.divergence"},
           {"train.lmbda=0.5", "every text is the model's own"},
           {"distill.disable_dropout=false", "nothing is dropped out"},
           {"train.temperature=0.7", "did you mean `rollout.temperature`"},
           {"max_completion_length=64", "of tasks grpo and distill rollout.max_new_tokens"},
           {"task=gkd", "write task: distill"}})
    EXPECT_NE(errors_of({given}).find(said), std::string::npos)
        << given << ": " << errors_of({given});
}

}  // namespace
}  // namespace convoy::settings
