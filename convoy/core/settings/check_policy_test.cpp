// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/check_policy.h"

#include <gtest/gtest.h>

#include "convoy/core/settings/errors_of_settings_test.h"

namespace convoy::settings {
namespace {

TEST(PolicySettings, GrpoRefusesWhatItWouldIgnoreByName) {
  const std::vector<std::string> own = {"task=grpo", "reward=[{kind: answer}]"};
  const auto refused = [&](std::vector<std::string> more) {
    more.insert(more.begin(), own.begin(), own.end());
    return errors_of(std::move(more));
  };
  EXPECT_EQ(refused({}), "");
  EXPECT_EQ(refused({"train.loss=dr_grpo", "policy.inner_steps=4", "rollout.samples=16",
                     "train.metric_for_best_model=eval_accuracy"}),
            "");
  EXPECT_EQ(refused({"reward=[{kind: answer}, {kind: length, most_tokens: 9, weight: 0}]"}), "");
  EXPECT_EQ(errors_of({"task=distill", "distill.teacher=a", "reward=[{kind: answer, weight: 0}]"}),
            "")
      << "measured, not learnt";
  EXPECT_EQ(refused({"rollout.temperature=0.7", "rollout.top_p=0.9", "rollout.top_k=50",
                     "rollout.min_p=0.02"}),
            "");
  for (const auto& [given, said] : std::vector<std::pair<std::string, std::string>>{
           {"train.packing=true", "train.packing: task grpo"},
           {"data.split.val_ratio=0.1", "data.split.val_ratio: task grpo"},
           {"generation.temperature=1", "generation.temperature: task grpo"},
           {"train.neftune_noise_alpha=5", "train.neftune_noise_alpha: task grpo"},
           {"tuning.lora.dropout=0.3", "tuning.lora.dropout: task grpo"},
           {"rollout.temperature=0", "rollout.temperature"},
           {"rollout.top_p=0", "rollout.top_p"},
           {"rollout.max_new_tokens=100000", "leave no room for its problem"},
           {"train.batch_size=auto", "train.batch_size: task grpo"},
           {"train.grad_accum=auto", "train.grad_accum: task grpo"},
           {"train.auto_find_batch_size=true", "train.auto_find_batch_size: task grpo"},
           {"data.max_field_chars=100", "data.max_field_chars: task grpo"},
           {"data.text_field=body", "data.text_field: task grpo"},
           {"data.truncation=drop", "data.truncation: task grpo"},
           {"data.unread_columns=error", "data.unread_columns: task grpo"},
           {"data.empty_answers=learn", "data.empty_answers: task grpo"},
           {"policy.reference=start", "policy.reference: task grpo"},
           {"policy.importance_cap=0.5", "policy.importance_cap: task grpo"},
           {"reward=[]", "nothing says which texts are good"},
           {"reward=[{kind: anser}]", "answer"},
           {"reward=[{kind: answer, weight: 0}, {kind: length, most_tokens: 9, weight: 0}]",
            "every weight is 0"},
           {"rejection.samples=3", "rejection.samples applies only to task rejection"},
           {"preference.beta=0.3", "preference.beta applies only to task"}})
    EXPECT_NE(refused({given}).find(said), std::string::npos) << given << ": " << refused({given});
  for (const char* const cap : {"policy.importance_cap=0", "policy.importance_cap=1"})
    EXPECT_EQ(refused({cap}), "");
  for (const char* const mode : {"tuning.mode=full", "tuning.mode=lora"})
    EXPECT_EQ(refused({mode, "policy.kl_beta=0.1"}), "");
  EXPECT_NE(
      refused({"policy.loss=cispo", "policy.clip_low=0.1"}).find("policy.clip_low: task grpo"),
      std::string::npos);
  EXPECT_EQ(refused({"policy.loss=cispo", "policy.clip_high=3"}), "");
  for (const char* key : {"rollout.samples=4", "policy.kl_beta=0.1", "reward=[{kind: answer}]"})
    EXPECT_NE(errors_of({key}).find("applies only to task grpo"), std::string::npos) << key;
}

TEST(PolicySettings, NamesOfTrlSayWhatToWrite) {
  const auto refused = [](const std::string& given) {
    return errors_of({"task=grpo", "reward=[{kind: answer}]", given});
  };
  for (const auto& [given, said] : std::vector<std::pair<std::string, std::string>>{
           {"train.metric_for_best_model=eval_reward", "write eval_loss"},
           {"train.metric_for_best_model=reward", "write eval_loss"},
           {"delta=4", "policy.clip_high"},
           {"train.delta=4", "policy.clip_high"},
           {"importance_sampling_level=sequence", "write policy.loss: gspo"},
           {"policy.importance_sampling_level=sequence_token", "write policy.loss: gspo"},
           {"scale_rewards=true", "write policy.scale_rewards: group"},
           {"train.scale_rewards=false", "write policy.scale_rewards: none"},
           {"train.scale_rewards=batch", "policy.scale_rewards"},
           {"temperature=0.7", "of tasks grpo and distill it is rollout.temperature"},
           {"top_k=4", "of tasks grpo and distill it is rollout.top_k"},
           {"min_p=0.1", "did you mean `rollout.min_p`"},
           {"repetition_penalty=1.1", "grpo and distill are drawn without one"},
           {"actor_rollout_ref.rollout.n=4", "coming from verl"},
           {"data.train_files=a.parquet", "did you mean `data.train_path`"},
           {"data.train_batch_size=8", "verl's is this times train.grad_accum and ranks"},
           {"data.max_prompt_length=512",
            "did you mean `model.max_seq_len`? (it holds a prompt and"},
           {"data.max_response_length=512", "did you mean `rollout.max_new_tokens`"},
           {"data.prompt_key=question", "did you mean `rollout.problem_field`"},
           {"data.filter_overlong_prompts=false", "left out with a warning"},
           {"trainer.total_epochs=15", "did you mean `train.epochs`"},
           {"trainer.save_freq=20", "did you mean `train.save_steps`"},
           {"trainer.n_gpus_per_node=8", "--ranks"},
           {"trainer.critic_warmup=5", "without a second model for values"},
           {"trainer.experiment_name=a", "did you mean `run_name`"},
           {"critic.optim.lr=1e-5", "without a second model for values"},
           {"reward_model.reward_manager=dapo", "did you mean `reward`? (coming from verl"},
           {"algorithm.adv_estimator=grpo", "coming from verl"},
           {"train.temperature=0.7", "did you mean `rollout.temperature`"},
           {"train.top_p=0.9", "did you mean `rollout.top_p`"},
           {"train.top_k=5", "did you mean `rollout.top_k`"},
           {"train.min_p=0.1", "did you mean `rollout.min_p`"},
           {"train.repetition_penalty=1.1", "drawn without a penalty"},
           {"rollout.repetition_penalty=1.1", "drawn without a penalty"},
           {"disable_dropout=true", "tasks grpo and distill drop nothing out"},
           {"policy.disable_dropout=false", "nothing is dropped out"},
           {"vllm_importance_sampling_mode=sequence_mask", "policy.importance_cap"},
           {"rollout.vllm_importance_sampling_cap=2", "policy.importance_cap"},
           {"train.use_bias_correction_kl=true", "plain gradient"},
           {"normalize_advantages=true", "write policy.scale_rewards: batch"},
           {"train.reward_clip_range=[-1, 1]", "rewards are not clipped"},
           {"top_entropy_quantile=0.2", "all tokens of a text are learnt"},
           {"train.entropy_coef=0.01", "no loss has a term of entropy"},
           {"policy.entropy_coeff=0.01", "no loss has a term of entropy"},
           {"off_policy_mask_threshold=0.5", "no text is masked for its age"},
           {"multi_objective_aggregation=normalize_then_sum", "summed with their weights"},
           {"train.rollout_func=mine.py", "the trainer's own engine draws"},
           {"train.loss_type=sft", "preference.sft_weight"}})
    EXPECT_NE(refused(given).find(said), std::string::npos) << given << ": " << refused(given);
  for (const char* given :
       {"importance_sampling_level=token", "policy.scale_rewards=true",
        "policy.scale_rewards=false", "log_completions=true",
        "vllm_importance_sampling_mode=token_truncate", "use_bias_correction_kl=false",
        "train.normalize_advantages=false", "top_entropy_quantile=1.0", "entropy_coef=0.0",
        "multi_objective_aggregation=sum_then_normalize", "rollout.disable_dropout=true",
        "data.filter_overlong_prompts=true", "trainer.critic_warmup=0",
        "trainer.val_before_train=false"})
    EXPECT_EQ(refused(given), "") << given;
}

}  // namespace
}  // namespace convoy::settings
