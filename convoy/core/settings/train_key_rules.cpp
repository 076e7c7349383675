// SPDX-License-Identifier: Apache-2.0
//
// Keys and values of SFT-Play's and Hugging Face's files that have no field here. A key is accepted
// silently only when it states what Convoy does anyway. The first matching rule counts.
#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "convoy/core/base/lower_case.h"
#include "convoy/core/settings/peer_file.h"
#include "convoy/core/settings/resolve_train.h"

namespace convoy::settings {

using config::KeyAction;
using config::KeyRule;

namespace {

std::vector<KeyRule> top_level_rules() {
  std::vector<KeyRule> rules;
  for (const char* key : {"mode", "task", "task_mode"}) {
    rules.push_back({key, {"cpt"}, KeyAction::Replace, "", "pretrain"});
    rules.push_back({key, {"cpt_mixed"}, KeyAction::Replace, "", "mixed"});
    rules.push_back({key, {"causal-lm"}, KeyAction::Replace, "", "sft"});
  }
  rules.push_back({"pack_factor",
                   {},
                   KeyAction::Notice,
                   "train.packing fills blocks best-fit, without a factor",
                   ""});
  return rules;
}

std::vector<KeyRule> model_rules() {
  constexpr auto kOneEngine = "there is one native engine; the name is recorded in checkpoints";
  std::vector<KeyRule> rules = {
      {"model.trust_remote_code", {"false"}, KeyAction::Accept, "", ""},
      {"model.trust_remote_code",
       {},
       KeyAction::Notice,
       "Convoy runs no code from model folders",
       ""},
      {"model.type", {"causal"}, KeyAction::Accept, "", ""},
      {"model.type", {}, KeyAction::Refuse, "only causal language models", ""},
      {"tuning.backend", {"bnb"}, KeyAction::Replace, kOneEngine, "bnb"},
      {"tuning.backend", {"unsloth"}, KeyAction::Replace, kOneEngine, "unsloth"},
      {"tuning.lora.bias", {"none"}, KeyAction::Accept, "", ""},
      {"tuning.lora.bias",
       {},
       KeyAction::Refuse,
       "biases stay frozen; list modules in modules_to_save",
       ""},
      {"tuning.lora.task_type", {"causal_lm"}, KeyAction::Accept, "", ""},
  };
  for (const std::string section : {"tuning", "model", "tuning.quantization"}) {
    const std::string compute = section + ".bnb_4bit_compute_dtype";
    rules.push_back({compute, {"bfloat16", "torch.bfloat16"}, KeyAction::Replace, "", "bf16"});
    rules.push_back({compute, {"float32", "torch.float32"}, KeyAction::Replace, "", "fp32"});
    rules.push_back({compute,
                     {"float16", "torch.float16", "fp16"},
                     KeyAction::Refuse,
                     "fp16 overflows in Gemma; use bfloat16",
                     ""});
    rules.push_back({section + ".bnb_4bit_quant_storage",
                     {},
                     KeyAction::Notice,
                     "codes are bytes, sharded or not",
                     ""});
  }
  return rules;
}

std::vector<KeyRule> batch_rules() {
  constexpr auto kLoader = "rows are encoded once, cached, and read by memory map";
  constexpr auto kDdp =
      "gradients are reduced in buckets while backward runs; a parameter that no row uses gets a "
      "gradient of zeros";
  return {
      {"train.per_device_eval_batch_size",
       {"auto"},
       KeyAction::Replace,
       "the same as train.batch_size",
       "0"},
      {"train.eval_batch_size", {"auto"}, KeyAction::Replace, "the same as train.batch_size", "0"},
      {"train.autoscale_alpha",
       {},
       KeyAction::Notice,
       "it never described memory; train.batch_size: auto measures what fits",
       ""},
      {"train.dataloader_num_workers", {}, KeyAction::Notice, kLoader, ""},
      {"train.dataloader_pin_memory", {}, KeyAction::Notice, kLoader, ""},
      {"train.ddp_find_unused_parameters", {"false"}, KeyAction::Accept, "", ""},
      {"train.ddp_find_unused_parameters", {}, KeyAction::Notice, kDdp, ""},
      {"train.ddp_broadcast_buffers", {"false"}, KeyAction::Accept, "", ""},
      {"train.ddp_broadcast_buffers", {}, KeyAction::Notice, "buffers are always rank 0's", ""},
  };
}

std::vector<KeyRule> train_rules() {
  constexpr auto kNoLogits = "evaluation never keeps logits";
  constexpr auto kPush = "after the training: convoy models push RUN USER/NAME";
  // transformers writes -1 where no interval is set.
  const std::string kNoInterval = "write 0 for the end of each epoch, or train.";
  return {
      // transformers writes -1 for no limit.
      {"train.steps", {"-1"}, KeyAction::Replace, "", "0"},
      {"train.max_steps", {"-1"}, KeyAction::Replace, "", "0"},
      {"train.save_steps", {"-1"}, KeyAction::Refuse, kNoInterval + "save_strategy: no", ""},
      {"train.eval_steps", {"-1"}, KeyAction::Refuse, kNoInterval + "eval_strategy: no", ""},
      {"train.fp16", {"false"}, KeyAction::Accept, "", ""},
      {"train.fp16", {"true"}, KeyAction::Replace, kFp16IsBf16, "true"},
      {"train.generation_num_beams", {"1"}, KeyAction::Accept, "", ""},
      {"train.generation_num_beams", {}, KeyAction::Refuse, "there is no beam search; use 1", ""},
      {"train.eval_do_concat_batches", {}, KeyAction::Notice, kNoLogits, ""},
      {"train.eval_accumulation_steps", {}, KeyAction::Notice, kNoLogits, ""},
      {"train.push_to_hub", {"false"}, KeyAction::Accept, "", ""},
      {"train.push_to_hub", {}, KeyAction::Refuse, kPush, ""},
      {"train.hub_model_id", {}, KeyAction::Refuse, kPush, ""},
      {"hub_model_id", {}, KeyAction::Refuse, kPush, ""},
      {"train.eval_strategy", {"false"}, KeyAction::Replace, "", "no"},
      {"train.evaluation_strategy", {"false"}, KeyAction::Replace, "", "no"},
      {"train.save_strategy", {"false"}, KeyAction::Replace, "", "no"},
      {"data.format", {"chat"}, KeyAction::Replace, "", "auto"},
      {"data.schema", {"chat"}, KeyAction::Replace, "", "auto"},
  };
}

// Keys of axolotl and of PEFT's LoRA+.
std::vector<KeyRule> optimizer_rules() {
  constexpr auto kEmbeddings = "adapters leave embeddings as they are, so none learns at this rate";
  std::vector<KeyRule> rules;
  for (const char* key : {"activation_offloading", "train.activation_offloading"}) {
    rules.push_back({key, {"false"}, KeyAction::Accept, "", ""});
    rules.push_back({key,
                     {},
                     KeyAction::Refuse,
                     "write train.gradient_checkpointing: true and train.activation_offload: cpu",
                     ""});
  }
  for (const char* key : {"gradient_checkpointing", "train.gradient_checkpointing"}) {
    rules.push_back({key,
                     {"offload", "offload_disk"},
                     KeyAction::Refuse,
                     "write train.gradient_checkpointing: true and train.activation_offload: cpu",
                     ""});
    rules.push_back({key, {"True", "TRUE", "1"}, KeyAction::Replace, "", "true"});
    rules.push_back({key, {"False", "FALSE", "0"}, KeyAction::Replace, "", "false"});
  }
  rules.push_back({"train.lr_scheduler_kwargs.min_lr",
                   {},
                   KeyAction::Refuse,
                   "write it as train.min_lr_ratio, a share of train.learning_rate",
                   ""});
  for (const char* key : {"loraplus_lr_embedding", "tuning.lora.loraplus_lr_embedding"})
    rules.push_back({key, {}, KeyAction::Notice, kEmbeddings, ""});
  return rules;
}

// Loss masks of axolotl and LLaMA-Factory.
std::vector<KeyRule> mask_rules() {
  std::vector<KeyRule> rules;
  for (const char* key : {"train_on_inputs", "train_on_prompt"})
    rules.push_back({key, {"true"}, KeyAction::Replace, "every token is learnt", "all"});
  rules.push_back(
      {"mask_history", {"true"}, KeyAction::Replace, "only the last answer is learnt", "last"});
  for (const char* key : {"train_on_inputs", "train_on_prompt", "mask_history", "neat_packing"})
    rules.push_back({key, {"false"}, KeyAction::Accept, "", ""});
  return rules;
}

// The side at which Hugging Face's tokenizers cut a long row.
std::vector<KeyRule> truncation_rules() {
  std::vector<KeyRule> rules;
  for (const char* key : {"truncation_side", "data.truncation_side"}) {
    rules.push_back({key, {"left"}, KeyAction::Replace, "", "keep_end"});
    rules.push_back({key, {"right"}, KeyAction::Replace, "", "keep_start"});
  }
  return rules;
}

// A metric's name with or without eval_, in upper or lower case.
std::vector<KeyRule> best_metric_rules() {
  std::vector<KeyRule> rules;
  for (const std::string& name : best_metric_names()) {
    const std::string low = lower_case(name);
    rules.push_back({"train.metric_for_best_model",
                     {low, low.substr(std::string_view("eval_").size())},
                     KeyAction::Replace,
                     "",
                     name});
  }
  return rules;
}

// The sections in which files of other trainers hold the keys of preferences: the top level, the
// section of transformers' keys, and our section.
constexpr std::array<std::string_view, 3> kPreferenceSections = {"", "train.", "preference."};

// Losses that other programs name in place of a task, and tasks in place of a loss.
std::vector<KeyRule> preference_words() {
  std::vector<KeyRule> rules;
  for (const char* key : {"task", "rl", "stage", "rlhf_type"})
    for (const char* loss : {"simpo", "ipo"})
      rules.push_back({key,
                       {loss},
                       KeyAction::Refuse,
                       fmt::format("write task: dpo and preference.loss: {}", loss),
                       ""});
  for (const char* key : {"task", "rl", "stage", "rlhf_type"}) {
    rules.push_back({key,
                     {"cpo", "cpo_simpo"},
                     KeyAction::Refuse,
                     "it is not here by this name: write task: dpo, preference.loss: simpo and "
                     "preference.sft_weight, CPO's alpha; with preference.length_normalised: false "
                     "and preference.target_margin: 0 the loss is CPO's",
                     ""});
    rules.push_back({key,
                     {"reward", "rm", "reward_model", "reward_modeling", "reward_modelling", "prm"},
                     KeyAction::Refuse,
                     "no reward model is trained here: task: dpo learns from the same rows of "
                     "`chosen` and `rejected` without one",
                     ""});
  }
  for (const char* key : {"task", "rl"})
    rules.push_back({key,
                     {"rloo", "gspo", "dapo", "dr_grpo", "cispo"},
                     KeyAction::Refuse,
                     "write task: grpo and policy.loss with this name",
                     ""});
  for (const char* key : {"task", "rl"})
    rules.push_back(
        {key,
         {"ppo", "reinforce"},
         KeyAction::Refuse,
         "it is not here; task: grpo learns from rewards without a second model for values",
         ""});
  static constexpr std::pair<const char*, const char*> kLosses[] = {
      {"dpo", "write preference.loss: sigmoid"},
      {"slic", "write preference.loss: hinge"},
      {"orpo", "write task: orpo, which has one loss"},
      {"kto_pair", "write task: kto, which reads pairs too"},
      {"sigmoid_norm", "write preference.loss: sigmoid and preference.length_normalised: true"},
      {"sft", "write preference.sft_weight, its weight beside preference.loss"}};
  for (const std::string_view section : kPreferenceSections)
    for (const char* const key : {"loss", "loss_type", "pref_loss", "dpo_loss_type"})
      for (const auto& [loss, text] : kLosses)
        rules.push_back({fmt::format("{}{}", section, key), {loss}, KeyAction::Refuse, text, ""});
  return rules;
}

// The columns of preferences, which other programs name in the configuration: axolotl by a strategy
// such as `type: chatml.intel`, LLaMA-Factory by their names.
std::vector<KeyRule> preference_columns() {
  constexpr auto kRecognised =
      "rows are recognised by their columns, and written in the model's own chat template: leave "
      "it out";
  std::vector<std::string> strategies = {"zephyr.nectar", "user_defined.default",
                                         "passthrough.default"};
  for (const char* style : {"chatml", "llama3", "chat_template"})
    for (const char* columns :
         {"argilla", "argilla_chat", "default", "icr", "intel", "prompt_pairs", "ultra"})
      strategies.push_back(fmt::format("{}.{}", style, columns));
  std::vector<KeyRule> rules;
  for (const char* key : {"type", "data.type", "data.schema", "data.format"})
    rules.push_back({key, strategies, KeyAction::Refuse, kRecognised, ""});
  for (const char* key : {"kto_tag", "data.kto_tag", "train.kto_tag", "preference.kto_tag"})
    rules.push_back({key,
                     {},
                     KeyAction::Refuse,
                     "task kto reads the column `label` or `kto_tag` of each row: give the column "
                     "one of these names, and leave this out",
                     ""});
  return rules;
}

// Keys of generating trainers, and of `convoy process`, for the samples of task rejection.
std::vector<KeyRule> rejection_rules() {
  std::vector<KeyRule> rules;
  for (const char* key : {"num_generations", "train.num_generations", "num_return_sequences",
                          "train.num_return_sequences", "rejection.n", "rejection.num_samples",
                          "rejection.num_generations", "rejection.num_return_sequences"})
    rules.push_back({key,
                     {},
                     KeyAction::Suggest,
                     "of tasks grpo and distill it is rollout.samples",
                     "rejection.samples"});
  for (const char* key : {"rejection.max_completion_length", "rejection.max_new_tokens"})
    rules.push_back({key, {}, KeyAction::Suggest, "", "rejection.max_tokens"});
  return rules;
}

// Keys that trainers of preferences and of rewards share: the suggested key is of preferences, the
// hint says the one of rewards.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kSharedNames = {
    {{"beta",
      "policy.kl_beta; of task distill distill.divergence, 0 being forward_kl, 1 reverse_kl, and "
      "between them js with distill.beta"},
     {"rl_beta", "policy.kl_beta"},
     {"loss_type", "policy.loss, of task distill distill.divergence"},
     {"loss", "policy.loss, of task distill distill.divergence"}}};

std::string hint_of_rewards(std::string_view name) {
  for (const auto& [shared, key] : kSharedNames)
    if (name == shared) return fmt::format("of task grpo it is {}", key);
  return "";
}

// Keys of TRL's, verl's and axolotl's trainers of rewards, for task grpo.
std::vector<KeyRule> policy_rules() {
  static constexpr std::pair<const char*, const char*> kNames[] = {
      {"rollout.num_generations", "rollout.samples"},
      {"rollout.n", "rollout.samples"},
      {"rollout.max_completion_length", "rollout.max_new_tokens"},
      {"rollout.response_length", "rollout.max_new_tokens"},
      {"epsilon", "policy.clip_low"},
      {"train.epsilon", "policy.clip_low"},
      {"policy.epsilon", "policy.clip_low"},
      {"policy.clip_ratio_low", "policy.clip_low"},
      {"epsilon_high", "policy.clip_high"},
      {"train.epsilon_high", "policy.clip_high"},
      {"policy.epsilon_high", "policy.clip_high"},
      {"policy.clip_ratio_high", "policy.clip_high"},
      {"vllm_importance_sampling_clip_max", "policy.importance_cap"},
      {"train.vllm_importance_sampling_clip_max", "policy.importance_cap"},
      {"vllm_importance_sampling_cap", "policy.importance_cap"},
      {"train.vllm_importance_sampling_cap", "policy.importance_cap"},
      {"rollout.vllm_importance_sampling_cap", "policy.importance_cap"},
      {"policy.vllm_importance_sampling_cap", "policy.importance_cap"},
      {"policy.beta", "policy.kl_beta"},
      {"kl_coef", "policy.kl_beta"},
      {"kl_loss_coef", "policy.kl_beta"},
      {"train.kl_loss_coef", "policy.kl_beta"},
      {"policy.loss_type", "policy.loss"},
      {"scale_rewards", "policy.scale_rewards"},
      {"train.scale_rewards", "policy.scale_rewards"},
      {"num_iterations", "policy.inner_steps"},
      {"train.num_iterations", "policy.inner_steps"},
      {"ppo_epochs", "policy.inner_steps"},
      {"mask_truncated_completions", "policy.mask_truncated"},
      {"train.mask_truncated_completions", "policy.mask_truncated"},
      {"reward_funcs", "reward"},
      {"train.reward_funcs", "reward"},
      {"reward_weights", "reward"},
      {"train.reward_weights", "reward"},
      {"rewards", "reward"}};
  std::vector<KeyRule> rules;
  for (const char* section : {"", "train.", "policy."}) {
    const auto path = [&](const char* name) { return fmt::format("{}{}", section, name); };
    rules.push_back({path("delta"),
                     {},
                     KeyAction::Refuse,
                     "a ratio has the bounds policy.clip_low and policy.clip_high, and no further "
                     "one: leave it out",
                     ""});
    rules.push_back({path("importance_sampling_level"), {"token"}, KeyAction::Accept, "", ""});
    rules.push_back({path("importance_sampling_level"),
                     {},
                     KeyAction::Refuse,
                     "write policy.loss: gspo, whose ratio is that of a whole text",
                     ""});
  }
  // TRL's older form of the key.
  for (const auto& [value, word] : {std::pair("true", "group"), std::pair("false", "none")}) {
    for (const char* key : {"scale_rewards", "train.scale_rewards"})
      rules.push_back({key,
                       {value},
                       KeyAction::Refuse,
                       fmt::format("write policy.scale_rewards: {}", word),
                       ""});
    rules.push_back({"policy.scale_rewards", {value}, KeyAction::Replace, "", word});
  }
  for (const auto& [name, key] : kNames) rules.push_back({name, {}, KeyAction::Suggest, "", key});
  rules.push_back({"train.metric_for_best_model",
                   {"eval_reward", "reward"},
                   KeyAction::Refuse,
                   "write eval_loss: of task grpo it is the mean reward of the answers to "
                   "data.val_path, negated, so the lowest is the best",
                   ""});
  // An alias of policy.loss; any other word means a loss of preferences.
  for (const std::string& word : policy_loss_words())
    rules.push_back({"train.loss", {word}, KeyAction::Replace, "", word});
  for (const std::string section : {"", "train.", "rollout."}) {
    for (const char* name : {"use_vllm", "vllm_mode", "vllm_gpu_memory_utilization",
                             "vllm_server_host", "vllm_server_port", "vllm_tensor_parallel_size"})
      rules.push_back({section + name,
                       {},
                       KeyAction::Notice,
                       "the trainer's own engine draws the texts, from the trainer's weights",
                       ""});
    rules.push_back({section + "generation_batch_size",
                     {},
                     KeyAction::Refuse,
                     "a step draws the texts of its own problems: train.batch_size, "
                     "train.grad_accum and rollout.samples",
                     ""});
    rules.push_back({section + "steps_per_generation",
                     {},
                     KeyAction::Refuse,
                     "each step draws its own texts; policy.inner_steps learns from them again",
                     ""});
  }
  return rules;
}

// Keys of verl's files outside its section `actor_rollout_ref`.
std::vector<KeyRule> verl_rules() {
  constexpr auto kRanks =
      "it is no key: `convoy train CONFIG --ranks N`, on several nodes with --nnodes";
  static constexpr std::array<std::array<const char*, 3>, 17> kNames = {{
      {"data.train_files", "data.train_path", ""},
      {"data.val_files", "data.val_path", ""},
      {"data.train_batch_size", "train.batch_size",
       "problems of a rank; verl's is this times train.grad_accum and ranks"},
      {"data.max_prompt_length", "model.max_seq_len",
       "it holds a prompt and its response: verl's max_prompt_length plus max_response_length"},
      {"data.max_response_length", "rollout.max_new_tokens",
       "model.max_seq_len holds a prompt and its response together"},
      {"data.prompt_key", "rollout.problem_field", ""},
      {"data.reward_fn_key", "reward",
       "every row has the same rewards; a program or a server gets the row (kind: command, http)"},
      {"trainer.total_epochs", "train.epochs", ""},
      {"trainer.total_training_steps", "train.steps", ""},
      {"trainer.save_freq", "train.save_steps", "verl's -1 is train.save_strategy: no"},
      {"trainer.test_freq", "train.eval_steps", "verl's -1 is train.eval_strategy: no"},
      {"trainer.max_actor_ckpt_to_keep", "train.save_total_limit", ""},
      {"trainer.default_local_dir", "train.output_dir", ""},
      {"trainer.resume_mode", "train.resume_from_checkpoint", ""},
      {"trainer.project_name", "logging.project", ""},
      {"trainer.experiment_name", "run_name", ""},
      {"trainer.logger", "logging.backend", ""},
  }};
  std::vector<KeyRule> rules;
  for (const auto& [name, key, hint] : kNames)
    rules.push_back({name, {}, KeyAction::Suggest, hint, key});
  rules.push_back({"data.filter_overlong_prompts", {"true"}, KeyAction::Accept, "", ""});
  rules.push_back(
      {"data.filter_overlong_prompts",
       {},
       KeyAction::Refuse,
       "problems that leave no room for rollout.max_new_tokens in model.max_seq_len are "
       "left out with a warning: leave it out",
       ""});
  rules.push_back({"data.return_raw_chat",
                   {},
                   KeyAction::Notice,
                   "rollout.chat says whether prompts are written in the chat template",
                   ""});
  for (const char* key : {"trainer.n_gpus_per_node", "trainer.nnodes"})
    rules.push_back({key, {}, KeyAction::Refuse, kRanks, ""});
  rules.push_back({"trainer.val_before_train", {"false"}, KeyAction::Accept, "", ""});
  rules.push_back({"trainer.val_before_train",
                   {},
                   KeyAction::Refuse,
                   "leave it out: `convoy eval` measures the model that a run starts from",
                   ""});
  rules.push_back({"trainer.critic_warmup", {"0"}, KeyAction::Accept, "", ""});
  for (const char* key : {"trainer.critic_warmup", "critic"})
    rules.push_back({key,
                     {},
                     KeyAction::Refuse,
                     "task: grpo learns from rewards without a second model for values: leave it "
                     "out",
                     ""});
  for (const auto& [section, ours] :
       {std::pair("actor_rollout_ref", "rollout"), std::pair("algorithm", "policy"),
        std::pair("custom_reward_function", "reward"), std::pair("reward_model", "reward")})
    rules.push_back({section,
                     {},
                     KeyAction::Suggest,
                     "coming from verl: docs/how-to/learn-from-rewards.md lists its keys and those "
                     "to write here",
                     ours});
  return rules;
}

// A key of other trainers of preferences or rewards that Convoy does not have. A value that says
// what Convoy does anyway is accepted.
struct AbsentKey {
  const char* name;
  std::vector<std::string> accepted;
  KeyAction action;  // for all other values
  const char* text;
};

// Keys of those trainers that have no field here.
std::vector<KeyRule> absent_policy_rules() {
  constexpr auto kWeightOfToken =
      "where engine and trainer differ, each token's weight is cut at policy.importance_cap "
      "(token_truncate): leave it out";
  constexpr auto kOwnEngine =
      "the trainer's own engine draws the texts: leave it out; a program or a server can reward "
      "them (reward: kind: command, http)";
  const std::vector<AbsentKey> keys = {
      {"log_completions", {}, KeyAction::Notice, "every text is written, to RUN/rollouts"},
      {"num_completions_to_print",
       {},
       KeyAction::Notice,
       "every text is written, to RUN/rollouts; `convoy runs show` prints some"},
      {"vllm_importance_sampling_mode", {"token_truncate"}, KeyAction::Refuse, kWeightOfToken},
      {"vllm_importance_sampling_correction",
       {"true"},
       KeyAction::Refuse,
       "write policy.importance_cap: 0"},
      {"use_bias_correction_kl",
       {"false"},
       KeyAction::Refuse,
       "the divergence of policy.kl_beta has its plain gradient, without the ratio: leave it out"},
      {"normalize_advantages",
       {"false"},
       KeyAction::Refuse,
       "write policy.scale_rewards: batch, which divides by the deviation of the batch's rewards"},
      {"reward_clip_range",
       {},
       KeyAction::Refuse,
       "rewards are not clipped: let the program or the server give numbers within the range, and "
       "leave it out"},
      {"top_entropy_quantile",
       {"1", "1.0"},
       KeyAction::Refuse,
       "all tokens of a text are learnt: leave it out"},
      {"entropy_coef",
       {"0", "0.0"},
       KeyAction::Refuse,
       "no loss has a term of entropy: leave it out; policy.kl_beta and a higher policy.clip_high "
       "keep texts from becoming alike"},
      {"entropy_coeff",
       {"0", "0.0"},
       KeyAction::Refuse,
       "no loss has a term of entropy: leave it out; policy.kl_beta and a higher policy.clip_high "
       "keep texts from becoming alike"},
      {"off_policy_mask_threshold",
       {},
       KeyAction::Refuse,
       "texts are drawn from the weights that learn, and no text is masked for its age: leave it "
       "out"},
      {"multi_objective_aggregation",
       {"sum_then_normalize"},
       KeyAction::Refuse,
       "rewards are summed with their weights, and the sum is normalised: leave it out"},
      {"rollout_func", {}, KeyAction::Refuse, kOwnEngine},
      {"environment_factory", {}, KeyAction::Refuse, kOwnEngine}};
  std::vector<KeyRule> rules;
  for (const std::string section : {"", "train.", "rollout.", "policy."})
    for (const AbsentKey& absent : keys) {
      if (!absent.accepted.empty())
        rules.push_back({section + absent.name, absent.accepted, KeyAction::Accept, "", ""});
      rules.push_back({section + absent.name, {}, absent.action, absent.text, ""});
    }
  return rules;
}

// Sampling of the texts that a step learns from, in the sections in which TRL has it, and keys of
// dropout in the sections of the tasks that drop nothing out.
std::vector<KeyRule> rollout_rules() {
  std::vector<KeyRule> rules;
  for (const std::string name : {"temperature", "top_p", "top_k"}) {
    rules.push_back({name,
                     {},
                     KeyAction::Suggest,
                     fmt::format("of tasks grpo and distill it is rollout.{0}, of task rejection "
                                 "rejection.{0}",
                                 name),
                     "generation." + name});
    rules.push_back({"train." + name,
                     {},
                     KeyAction::Suggest,
                     fmt::format("of task rejection it is rejection.{0}, of `eval --generate` "
                                 "generation.{0}",
                                 name),
                     "rollout." + name});
  }
  for (const char* key : {"min_p", "train.min_p"})
    rules.push_back(
        {key, {}, KeyAction::Suggest, "of task rejection it is rejection.min_p", "rollout.min_p"});
  rules.push_back({"repetition_penalty",
                   {},
                   KeyAction::Suggest,
                   "texts of tasks grpo and distill are drawn without one",
                   "rejection.repetition_penalty"});
  for (const char* key : {"train.repetition_penalty", "rollout.repetition_penalty"}) {
    rules.push_back({key, {"1", "1.0"}, KeyAction::Accept, "", ""});
    rules.push_back({key,
                     {},
                     KeyAction::Refuse,
                     "texts that a step learns from are drawn without a penalty: leave it out; of "
                     "task rejection it is rejection.repetition_penalty",
                     ""});
  }
  for (const char* key :
       {"rollout.disable_dropout", "policy.disable_dropout", "distill.disable_dropout"}) {
    rules.push_back({key, {"true"}, KeyAction::Accept, "", ""});
    rules.push_back(
        {key, {}, KeyAction::Refuse, "nothing is dropped out while it learns: leave it out", ""});
  }
  return rules;
}

// Keys of TRL's trainers of distillation, for task distill.
std::vector<KeyRule> distill_rules() {
  static constexpr std::pair<const char*, const char*> kNames[] = {
      {"teacher", "distill.teacher"},
      {"teacher_model", "distill.teacher"},
      {"teacher_model_path", "distill.teacher"},
      {"teacher_model_name_or_path", "distill.teacher"},
      {"teacher_model_server_url", "distill.engine"},
      {"loss_top_k", "distill.top_k"}};
  constexpr auto kOwnTexts =
      "every text is the model's own: `convoy process` writes a teacher's texts as rows, and task: "
      "sft learns them";
  constexpr auto kTeacher =
      "distill.teacher is the teacher: a model folder, or with distill.engine its name at a server";
  std::vector<KeyRule> rules;
  for (const char* key : {"task", "rl", "stage"})
    rules.push_back({key,
                     {"gkd", "opd", "distillation", "on_policy_distillation"},
                     KeyAction::Refuse,
                     "write task: distill and distill.teacher",
                     ""});
  for (const std::string section : {"", "train.", "distill."}) {
    for (const auto& [name, key] : kNames)
      if (const std::string path = section + name; path != key)
        rules.push_back({path, {}, KeyAction::Suggest, "", key});
    rules.push_back({section + "lmbda", {"1", "1.0"}, KeyAction::Accept, "", ""});
    rules.push_back({section + "lmbda", {}, KeyAction::Refuse, kOwnTexts, ""});
    rules.push_back({section + "seq_kd", {"false"}, KeyAction::Accept, "", ""});
    rules.push_back({section + "seq_kd", {}, KeyAction::Refuse, kOwnTexts, ""});
    rules.push_back({section + "loss_add_tail", {"true"}, KeyAction::Accept, "", ""});
    rules.push_back({section + "loss_add_tail",
                     {},
                     KeyAction::Refuse,
                     "tokens beyond distill.top_k count as one: leave it out",
                     ""});
    rules.push_back({section + "reverse_kl_top_1_mode",
                     {},
                     KeyAction::Refuse,
                     "every divergence compares the teacher's distill.top_k tokens: leave it out",
                     ""});
    for (const char* name :
         {"teacher_model_init_kwargs", "teacher_model_revision", "teacher_tokenizer_name_or_path"})
      rules.push_back({section + name, {}, KeyAction::Refuse, kTeacher, ""});
    rules.push_back({section + "use_teacher_server", {"false"}, KeyAction::Accept, "", ""});
    rules.push_back({section + "use_teacher_server",
                     {},
                     KeyAction::Refuse,
                     "name the server: distill.engine",
                     ""});
  }
  return rules;
}

const std::vector<AbsentKey>& absent_preference_keys() {
  constexpr auto kCut =
      "a prompt and its completion are cut together: model.max_seq_len and data.truncation";
  constexpr auto kStill =
      "the reference does not move: train in rounds, each from the result of the one before";
  constexpr auto kReverse =
      "the divergence is reverse KL, which each loss is made for: leave it out";
  constexpr auto kAnswers =
      "evaluations of preferences measure losses and rewards; `convoy generate` writes answers of "
      "the run's model";
  constexpr auto kOwnAdapter =
      "preference.reference: start is the adapter that training continues; merge another one into "
      "its base (`convoy models merge`) and name the folder as preference.reference";
  constexpr auto kReadAlike =
      "preference.reference names the folder of the reference, which is read as the model is";
  constexpr auto kUnpadded = "rows of a batch lie one after another, without padding";
  constexpr auto kWeighing =
      "pairs are not weighed by the model's own probabilities (WPO): leave it out";
  static const std::vector<AbsentKey> keys = {
      {"max_prompt_length", {}, KeyAction::Refuse, kCut},
      {"max_prompt_len", {}, KeyAction::Refuse, kCut},
      {"max_target_length", {}, KeyAction::Refuse, kCut},
      {"max_completion_length",
       {},
       KeyAction::Refuse,
       "a prompt and its completion are cut together: model.max_seq_len and data.truncation; of "
       "task rejection it is rejection.max_tokens, of tasks grpo and distill "
       "rollout.max_new_tokens"},
      {"disable_dropout",
       {"false"},
       KeyAction::Refuse,
       "dropout stays as it is set: write tuning.lora.dropout: 0; tasks grpo and distill drop "
       "nothing out, leave it out there"},
      {"loss_weights",
       {},
       KeyAction::Refuse,
       "write preference.sft_weight, the weight of the loss of chosen answers beside "
       "preference.loss; no other losses are mixed"},
      {"label_smoothing_factor",
       {"0", "0.0"},
       KeyAction::Refuse,
       "preferences have preference.label_smoothing; other losses are not smoothed"},
      {"ld_alpha",
       {},
       KeyAction::Refuse,
       "no loss weighs the tokens behind the shorter answer less: preference.length_normalised: "
       "true keeps long answers from counting more"},
      {"f_divergence_type", {"reverse_kl"}, KeyAction::Refuse, kReverse},
      {"f_alpha_divergence_coef", {}, KeyAction::Refuse, kReverse},
      {"sync_ref_model", {"false"}, KeyAction::Refuse, kStill},
      {"ref_model_mixup_alpha", {}, KeyAction::Refuse, kStill},
      {"ref_model_sync_steps", {}, KeyAction::Refuse, kStill},
      {"ref_model_init_kwargs", {}, KeyAction::Refuse, kReadAlike},
      {"ref_model_quantization_bit", {}, KeyAction::Refuse, kReadAlike},
      {"ref_model_adapters", {}, KeyAction::Refuse, kOwnAdapter},
      {"ref_adapter_name", {}, KeyAction::Refuse, kOwnAdapter},
      {"ref_adapters", {}, KeyAction::Refuse, kOwnAdapter},
      {"reference_free",
       {"false"},
       KeyAction::Refuse,
       "preference.loss: simpo and task: orpo have no reference"},
      {"use_weighting", {"false"}, KeyAction::Refuse, kWeighing},
      {"dpo_use_weighting", {"false"}, KeyAction::Refuse, kWeighing},
      {"discopop_tau",
       {},
       KeyAction::Refuse,
       "there is no loss discopop: take another preference.loss, and leave this out"},
      {"pref_bco_weight",
       {"0", "0.0"},
       KeyAction::Refuse,
       "there is no loss bco_pair: take another preference.loss, and leave this out"},
      {"gamma_beta_ratio",
       {},
       KeyAction::Refuse,
       "write preference.target_margin: this ratio times preference.beta"},
      {"generate_during_eval", {"false"}, KeyAction::Refuse, kAnswers},
      {"dpo_generate_during_eval", {"false"}, KeyAction::Refuse, kAnswers},
      {"train_sampling_strategy",
       {"random"},
       KeyAction::Refuse,
       "write data.shuffle: false for the order of the file"},
      {"precompute_ref_log_probs",
       {},
       KeyAction::Notice,
       "log-probabilities of the reference are computed once, before the first step"},
      {"precompute_ref_batch_size",
       {},
       KeyAction::Notice,
       "the reference reads as many rows at a time as evaluations do: train.eval_batch_size"},
      {"force_use_ref_model",
       {},
       KeyAction::Notice,
       "preference.reference: FOLDER is the reference, beside an adapter too"},
      {"padding_free", {"true"}, KeyAction::Notice, kUnpadded},
      {"dpo_padding_free", {"true"}, KeyAction::Notice, kUnpadded},
      {"padding_value", {}, KeyAction::Notice, kUnpadded},
      {"label_pad_token_id", {}, KeyAction::Notice, kUnpadded},
      {"use_logits_to_keep", {}, KeyAction::Notice, "no logits are kept"},
      {"dpo_use_logits_to_keep", {}, KeyAction::Notice, "no logits are kept"}};
  return keys;
}

// Keys of TRL's, axolotl's and LLaMA-Factory's trainers of preferences.
std::vector<KeyRule> preference_rules() {
  static constexpr std::pair<const char*, const char*> kNames[] = {
      {"rl", "task"},
      {"stage", "task"},
      {"rlhf_type", "task"},
      {"beta", "preference.beta"},
      {"rl_beta", "preference.beta"},
      {"dpo_beta", "preference.beta"},
      {"pref_beta", "preference.beta"},
      {"orpo_alpha", "preference.beta"},
      {"loss_type", "preference.loss"},
      {"loss", "preference.loss"},
      {"pref_loss", "preference.loss"},
      {"dpo_loss_type", "preference.loss"},
      {"dpo_norm_loss", "preference.length_normalised"},
      {"average_log_prob", "preference.length_normalised"},
      {"label_smoothing", "preference.label_smoothing"},
      {"dpo_label_smoothing", "preference.label_smoothing"},
      {"simpo_gamma", "preference.target_margin"},
      {"cpo_simpo_gamma", "preference.target_margin"},
      {"gamma", "preference.target_margin"},
      {"rpo_alpha", "preference.sft_weight"},
      {"pref_ftx", "preference.sft_weight"},
      {"kto_desirable_weight", "preference.desirable_weight"},
      {"kto_chosen_weight", "preference.desirable_weight"},
      {"kto_undesirable_weight", "preference.undesirable_weight"},
      {"kto_rejected_weight", "preference.undesirable_weight"},
      {"desirable_weight", "preference.desirable_weight"},
      {"undesirable_weight", "preference.undesirable_weight"},
      {"cpo_alpha", "preference.sft_weight"},
      {"ref_model", "preference.reference"},
      {"ref_model_name_or_path", "preference.reference"},
      {"ref_model_path", "preference.reference"},
      {"reference_model", "preference.reference"},
      {"max_length", "model.max_seq_len"},
      {"truncation_mode", "data.truncation"}};
  std::vector<KeyRule> rules;
  for (const std::string_view section : kPreferenceSections) {
    for (const auto& [name, key] : kNames)
      if (const std::string path = fmt::format("{}{}", section, name); path != key)
        rules.push_back({path, {}, KeyAction::Suggest, hint_of_rewards(name), key});
    for (const AbsentKey& absent : absent_preference_keys()) {
      const std::string path = fmt::format("{}{}", section, absent.name);
      if (!absent.accepted.empty())
        rules.push_back({path, absent.accepted, KeyAction::Accept, "", ""});
      rules.push_back({path, {}, absent.action, absent.text, ""});
    }
  }
  rules.push_back({"train.metric_for_best_model",
                   {"eval_rewards/accuracies", "rewards/accuracies"},
                   KeyAction::Replace,
                   "",
                   "eval_accuracy"});
  rules.push_back({"train.metric_for_best_model",
                   {"eval_margins", "margins"},
                   KeyAction::Replace,
                   "",
                   std::string(kMarginMetric)});
  return rules;
}

// Keys of axolotl, LLaMA-Factory, TRL, MLX and torchtune that have another name here.
std::vector<KeyRule> names_elsewhere() {
  static constexpr std::pair<const char*, const char*> kNames[] = {
      {"base_model", "model.name"},
      {"model_name_or_path", "model.name"},
      {"sequence_len", "model.max_seq_len"},
      {"cutoff_len", "model.max_seq_len"},
      {"adapter", "tuning.mode"},
      {"finetuning_type", "tuning.mode"},
      {"use_lora", "tuning.mode"},
      {"lora_target", "tuning.lora.target_modules"},
      {"lora_target_linear", "tuning.lora.target_modules"},
      {"lora_layers", "tuning.lora.layers_to_transform"},
      {"adapter_name_or_path", "tuning.lora.adapter"},
      {"micro_batch_size", "train.batch_size"},
      {"optimizer", "train.optim"},
      {"train.optimizer", "train.optim"},
      {"iters", "train.steps"},
      {"warmup", "train.warmup_steps"},
      {"train.warmup", "train.warmup_steps"},
      {"gradient_clipping", "train.max_grad_norm"},
      {"clip_grad_norm", "train.max_grad_norm"},
      {"grad_clip", "train.max_grad_norm"},
      {"steps_per_report", "train.logging_steps"},
      {"dataset", "data.train_path"},
      {"dataset_name", "data.train_path"},
      {"train_file", "data.train_path"},
      {"validation_file", "data.val_path"},
      {"val_set_size", "data.split.val_ratio"},
      {"val_size", "data.split.val_ratio"},
      {"chat_template", "data.template_path"},
      {"template", "data.template_path"},
      {"project", "logging.project"},
      {"wandb_project", "logging.project"},
      {"train.wandb_project", "logging.project"}};
  std::vector<KeyRule> rules;
  for (const auto& [name, key] : kNames) rules.push_back({name, {}, KeyAction::Suggest, "", key});
  return rules;
}

}  // namespace

const std::vector<KeyRule>& train_key_rules() {
  static const std::vector<KeyRule> rules = [] {
    std::vector<KeyRule> all = top_level_rules();
    for (std::vector<KeyRule> part :
         {model_rules(), batch_rules(), train_rules(), optimizer_rules(), mask_rules(),
          truncation_rules(), preference_words(), preference_columns(), policy_rules(),
          verl_rules(), absent_policy_rules(), rollout_rules(), distill_rules(), preference_rules(),
          rejection_rules(), best_metric_rules(), names_elsewhere()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return rules;
}

}  // namespace convoy::settings
