// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/check_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "convoy/core/config/describe.h"

namespace convoy::settings {
namespace {

struct IgnoredKeys {
  std::string_view reason;
  std::string_view hint;
  std::vector<std::string_view> begins;  // the beginnings of the keys
};

const std::array<IgnoredKeys, 8>& ignored_keys() {
  static const std::array<IgnoredKeys, 8> keys = {
      {{"the rows are the model's own texts, which count from their first token",
        "remove it",
        {"data.supervise", "data.roles_to_train", "data.train_on_eos", "data.schema",
         "data.empty_answers", "train.packing"}},
       {"a problem is asked whole: one that leaves no room for rollout.max_new_tokens is left out",
        "remove it; model.max_seq_len says how long problem and text may be together",
        {"data.max_field_chars", "data.truncation"}},
       {"a problem has a column of its own", "name it: rollout.problem_field", {"data.text_field"}},
       {"rewards and their programs get all columns of a row, so none is unread",
        "remove it",
        {"data.unread_columns"}},
       {"problems are not divided into splits", "name a file: data.val_path", {"data.split."}},
       {"evaluations answer data.val_path greedily and measure rewards",
        "remove it",
        {"train.predict_with_generate", "train.generation_", "train.eval_metrics",
         "train.eval_generate_", "train.eval_json_schema"}},
       {"the model that learns must be the one that drew the texts",
        "remove it",
        {"train.neftune_noise_alpha", "tuning.lora.dropout"}},
       {"it draws as rollout says", "remove it", {"generation."}}}};
  return keys;
}

// Returns null when the task reads the key.
const IgnoredKeys* why_ignored(std::string_view path) {
  for (const IgnoredKeys& keys : ignored_keys())
    for (const std::string_view begin : keys.begins)
      if (path.starts_with(begin)) return &keys;
  return nullptr;
}

class PolicyCheck {
 public:
  PolicyCheck(const TrainSettings& settings, const config::Resolved& resolved,
              config::ErrorList& errors)
      : settings_(settings), resolved_(resolved), errors_(errors) {}

  void run() const {
    check_texts();
    check_draws();
    check_reference();
    check_clip();
    check_importance();
  }

  // Checks what does not depend on the loss.
  void check_texts() const {
    refuse_ignored();
    check_rewards();
    check_length();
    if (settings_.data.bad_rows == "replace")
      refuse("data.bad_rows", "problems are read as they are, found replace", "error or skip");
    check_batch();
  }

 private:
  void refuse(const std::string& key, std::string_view reason, std::string_view hint) const {
    errors_.add(ConfigError(fmt::format("{}: task {}: {}", key, settings_.task, reason),
                            resolved_.location(key, std::string(hint))));
  }

  void refuse_ignored() const {
    TrainSettings given = settings_;
    TrainSettings defaults;
    for (const auto& [path, value] :
         config::changed_values(config::list_fields(given), config::list_fields(defaults)))
      if (const IgnoredKeys* const ignored = why_ignored(path); ignored && !says_what_is_done(path))
        refuse(path, ignored->reason, ignored->hint);
  }

  // A record that says that no rows are held out, or that nothing is dropped, says what the task
  // does.
  bool says_what_is_done(std::string_view path) const {
    return (path == "data.split.val_ratio" && settings_.data.split.val_ratio.value == 0.0) ||
           (path == "tuning.lora.dropout" && settings_.tuning.lora.dropout == 0);
  }

  void check_batch() const {
    const TrainingSettings& train = settings_.train;
    if (train.batch_size.is_auto())
      refuse("train.batch_size", "it counts problems, and is not chosen by memory",
             "write a number: each problem has rollout.samples texts");
    else if (train.grad_accum.is_auto())
      refuse("train.grad_accum", "micro-batches hold problems, and are not chosen by memory",
             "write a number, or leave it out");
    else if (train.chooses_batch())
      refuse("train.auto_find_batch_size", "batches count problems, and are not chosen by memory",
             "remove it");
  }

  void check_rewards() const {
    try {
      const std::vector<RewardSettings> rewards = rewards_of(settings_.reward);
      if (!learns_rewards(settings_.task_facts())) return;
      if (rewards.empty())
        refuse("reward", "nothing says which texts are good",
               "reward: [{kind: answer}] compares answers with those of the problems");
      else if (std::all_of(rewards.begin(), rewards.end(),
                           [](const RewardSettings& reward) { return reward.weight == 0; }))
        refuse("reward", "every weight is 0, so all texts are equally good",
               "give one of them a weight; those of weight 0 are measured and not learnt");
    } catch (const ConfigError& error) {
      errors_.add(ConfigError(error.what(),
                              resolved_.location(error.location().key, error.location().hint)));
    }
  }

  void check_length() const {
    const RolloutSettings& rollout = settings_.rollout;
    if (rollout.max_new_tokens >= settings_.model.max_seq_len)
      refuse(
          "rollout.max_new_tokens",
          fmt::format("{} tokens of a text leave no room for its problem in model.max_seq_len {}",
                      rollout.max_new_tokens, settings_.model.max_seq_len),
          "raise model.max_seq_len, or lower it");
  }

  void check_draws() const {
    const RolloutSettings& rollout = settings_.rollout;
    if (rollout.samples < 2)
      refuse("rollout.samples", "a text is compared with others of its problem, found 1",
             "2 at least");
  }

  void check_importance() const {
    const double cap = settings_.policy.importance_cap;
    if (cap > 0 && cap < 1)
      refuse("policy.importance_cap",
             fmt::format("{:g} would lower the weights of tokens that engine and trainer agree on",
                         cap),
             "1 or more, or 0 for none");
  }

  void check_clip() const {
    const PolicySettings& policy = settings_.policy;
    if (policy_loss_named(policy.loss).clips_weight && policy.clip_low != PolicySettings().clip_low)
      refuse("policy.clip_low", fmt::format("loss {} has no lower bound", policy.loss),
             "remove it; policy.clip_high is the upper bound");
  }

  void check_reference() const {
    const PolicySettings& policy = settings_.policy;
    const PolicySettings usual;
    if (policy.kl_beta == 0) {
      if (policy.reference != usual.reference)
        refuse("policy.reference", "policy.kl_beta is 0, so nothing is measured from a reference",
               "set policy.kl_beta, or remove it");
      return;
    }
    if (policy.reference == "start")
      refuse("policy.reference",
             "the adapter that training continues is not kept beside the one that trains",
             "base, or a folder: merge the adapter into its base (convoy models merge)");
  }

  const TrainSettings& settings_;
  const config::Resolved& resolved_;
  config::ErrorList& errors_;
};

}  // namespace

void check_policy(const TrainSettings& settings, const config::Resolved& resolved,
                  config::ErrorList& errors) {
  PolicyCheck(settings, resolved, errors).run();
}

void check_rollouts(const TrainSettings& settings, const config::Resolved& resolved,
                    config::ErrorList& errors) {
  PolicyCheck(settings, resolved, errors).check_texts();
}

}  // namespace convoy::settings
