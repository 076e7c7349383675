// SPDX-License-Identifier: Apache-2.0
//
// Keys and values of SFT-Play's and Hugging Face's files that have no field here. Nothing is accepted in silence unless
// it is what Convoy does anyway. The first matching rule counts.
#include "convoy/settings/resolve_train.h"

namespace convoy::settings {

using config::KeyAction;
using config::KeyRule;

namespace {

std::vector<KeyRule> top_level_rules() {
  constexpr auto kMixed =
      "mixing data sets by weight is not there yet; train on one file, task: sft or pretrain";
  std::vector<KeyRule> rules;
  for (const char* key : {"mode", "task", "task_mode"}) {
    rules.push_back({key, {"cpt"}, KeyAction::Replace, "", "pretrain"});
    rules.push_back({key, {"cpt_mixed"}, KeyAction::Refuse, kMixed, ""});
    rules.push_back({key, {"causal-lm"}, KeyAction::Replace, "", "sft"});
  }
  rules.push_back({"datasets", {}, KeyAction::Refuse, kMixed, ""});
  rules.push_back({"num_gpus", {}, KeyAction::Notice, "--nproc says how many ranks there are", ""});
  rules.push_back({"pack_factor",
                   {},
                   KeyAction::Notice,
                   "train.packing fills blocks best-fit, without a factor",
                   ""});
  return rules;
}

std::vector<KeyRule> model_rules() {
  constexpr auto kQuantised = "quantised training is not there yet; use mode: lora with bf16";
  return {
      {"model.trust_remote_code", {"false"}, KeyAction::Accept, "", ""},
      {"model.trust_remote_code",
       {},
       KeyAction::Notice,
       "Convoy runs no code from model folders",
       ""},
      {"model.type", {"causal"}, KeyAction::Accept, "", ""},
      {"model.type", {}, KeyAction::Refuse, "only causal language models", ""},
      {"tuning.mode", {"qlora"}, KeyAction::Refuse, kQuantised, ""},
      {"tuning.backend", {}, KeyAction::Notice, "there is one native engine", ""},
      {"tuning.load_in_4bit", {"false"}, KeyAction::Accept, "", ""},
      {"tuning.load_in_4bit", {}, KeyAction::Refuse, kQuantised, ""},
      {"tuning.load_in_8bit", {"false"}, KeyAction::Accept, "", ""},
      {"tuning.load_in_8bit", {}, KeyAction::Refuse, kQuantised, ""},
      {"tuning.lora.bias", {"none"}, KeyAction::Accept, "", ""},
      {"tuning.lora.bias",
       {},
       KeyAction::Refuse,
       "biases stay frozen; list modules in modules_to_save",
       ""},
      {"tuning.lora.task_type", {"causal_lm"}, KeyAction::Accept, "", ""},
  };
}

std::vector<KeyRule> batch_rules() {
  constexpr auto kNoProbe =
      "finding the batch size by measurement is not there yet; write a number";
  constexpr auto kDerived = "train.global_batch_size decides it, or it is 1";
  constexpr auto kLoader = "rows are encoded once, cached, and read by memory map";
  constexpr auto kDdp =
      "gradients are reduced in buckets while backward runs; a parameter that no row uses gets a "
      "gradient of zeros";
  return {
      {"train.batch_size", {"auto"}, KeyAction::Refuse, kNoProbe, ""},
      {"train.per_device_train_batch_size", {"auto"}, KeyAction::Refuse, kNoProbe, ""},
      {"train.grad_accum", {"auto"}, KeyAction::Replace, kDerived, "0"},
      {"train.gradient_accumulation_steps", {"auto"}, KeyAction::Replace, kDerived, "0"},
      {"train.per_device_eval_batch_size",
       {"auto"},
       KeyAction::Replace,
       "the same as train.batch_size",
       "0"},
      {"train.eval_batch_size", {"auto"}, KeyAction::Replace, "the same as train.batch_size", "0"},
      {"train.target_tokens_per_device_step",
       {},
       KeyAction::Notice,
       "train.batch_size and grad_accum are numbers",
       ""},
      {"train.autoscale_alpha",
       {},
       KeyAction::Notice,
       "it never described memory; train.batch_size is a number",
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
  constexpr auto kGenerates =
      "evaluation during training measures the loss; `convoy eval --generate` scores answers after "
      "it";
  constexpr auto kDeepSpeed =
      "DeepSpeed files are not read yet; remove it: parallel.strategy zero1, zero2, zero3 are its "
      "stages";
  constexpr auto kNoLogits = "evaluation never keeps logits";
  return {
      {"train.fp16", {"false"}, KeyAction::Accept, "", ""},
      {"train.fp16", {}, KeyAction::Refuse, "use bf16: true", ""},
      {"train.deepspeed", {}, KeyAction::Refuse, kDeepSpeed, ""},
      {"train.predict_with_generate", {"false"}, KeyAction::Accept, "", ""},
      {"train.predict_with_generate", {}, KeyAction::Refuse, kGenerates, ""},
      {"train.generation_num_beams", {"1"}, KeyAction::Accept, "", ""},
      {"train.generation_num_beams", {}, KeyAction::Refuse, "there is no beam search; use 1", ""},
      {"train.generation_max_new_tokens", {}, KeyAction::Notice, kGenerates, ""},
      {"train.eval_do_concat_batches", {}, KeyAction::Notice, kNoLogits, ""},
      {"train.eval_accumulation_steps", {}, KeyAction::Notice, kNoLogits, ""},
      {"train.eval_strategy", {"false"}, KeyAction::Replace, "", "no"},
      {"train.evaluation_strategy", {"false"}, KeyAction::Replace, "", "no"},
      {"train.save_strategy", {"false"}, KeyAction::Replace, "", "no"},
      {"train.metric_for_best_model", {"loss"}, KeyAction::Replace, "", "eval_loss"},
      {"train.metric_for_best_model", {"accuracy"}, KeyAction::Replace, "", "eval_accuracy"},
      {"train.metric_for_best_model",
       {"rougel", "eval_rougel", "exact_match", "sari"},
       KeyAction::Refuse,
       kGenerates,
       ""},
      {"data.format", {"chat"}, KeyAction::Replace, "", "auto"},
      {"data.schema", {"chat"}, KeyAction::Replace, "", "auto"},
  };
}

}  // namespace

const std::vector<KeyRule>& train_key_rules() {
  static const std::vector<KeyRule> rules = [] {
    std::vector<KeyRule> all = top_level_rules();
    for (std::vector<KeyRule> part : {model_rules(), batch_rules(), train_rules()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return rules;
}

}  // namespace convoy::settings
