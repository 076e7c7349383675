// SPDX-License-Identifier: Apache-2.0
//
// Learning from rewards of the model's own texts (task grpo): the losses, one line each, and their
// settings. Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/config/field.h"

namespace convoy::settings {

enum class PolicyLoss { Grpo, Dapo, DrGrpo, Bnpo, Gspo, Rloo, Cispo };

// Divides the sum of a step's token losses. All counts are of the step's global batch,
// so accumulation and ranks change nothing.
enum class PolicyDivisor {
  Rollouts,       // each rollout's mean over its tokens, then the mean over rollouts
  Tokens,         // all tokens of the rollouts
  LongestTokens,  // rollouts times rollout.max_new_tokens
};

struct PolicyLossFacts {
  PolicyLoss loss;
  std::string_view name;
  std::string_view paper;
  PolicyDivisor divisor = PolicyDivisor::Rollouts;
  bool weighs_sequences = false;     // one ratio per rollout instead of one per token
  bool takes_mean_ratio = false;     // that ratio is the geometric mean of the token ratios
  bool clips_weight = false;         // the clipped ratio is a weight without a gradient (CISPO)
  bool leaves_one_out = false;       // the baseline of a rollout is the mean of the others
  bool lowers_rewards = false;       // kl_beta acts on rewards (lower_rewards), not on the loss
  std::string_view scale = "group";  // policy.scale_rewards auto
};

inline constexpr std::array<PolicyLossFacts, 7> kPolicyLosses = {{
    {.loss = PolicyLoss::Grpo, .name = "grpo", .paper = "arXiv 2402.03300"},
    {.loss = PolicyLoss::Dapo,
     .name = "dapo",
     .paper = "arXiv 2503.14476",
     .divisor = PolicyDivisor::Tokens},
    {.loss = PolicyLoss::DrGrpo,
     .name = "dr_grpo",
     .paper = "arXiv 2503.20783",
     .divisor = PolicyDivisor::LongestTokens,
     .scale = "none"},
    {.loss = PolicyLoss::Bnpo,
     .name = "bnpo",
     .paper = "TRL's name for token sums over the tokens of a batch",
     .divisor = PolicyDivisor::Tokens},
    {.loss = PolicyLoss::Gspo,
     .name = "gspo",
     .paper = "arXiv 2507.18071",
     .weighs_sequences = true,
     .takes_mean_ratio = true},
    {.loss = PolicyLoss::Rloo,
     .name = "rloo",
     .paper = "arXiv 2402.14740",
     .weighs_sequences = true,
     .leaves_one_out = true,
     .lowers_rewards = true,
     .scale = "none"},
    {.loss = PolicyLoss::Cispo,
     .name = "cispo",
     .paper = "arXiv 2506.13585",
     .divisor = PolicyDivisor::Tokens,
     .clips_weight = true},
}};

// Throws ConfigError for any other word.
const PolicyLossFacts& policy_loss_named(std::string_view name);
std::vector<std::string> policy_loss_words();
std::string policy_loss_help();

// Texts of the model that a step learns from.
struct RolloutSettings {
  int64_t samples = 8;
  int64_t max_new_tokens = 256;
  double temperature = 1;
  double top_p = 1;
  int64_t top_k = 0;
  double min_p = 0;
  config::NameList stop;
  std::string prompt;
  std::string chat = "auto";
  std::string problem_field;
  std::string answer_field;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("samples", samples, "texts of each problem and step: its group")
        .at_least(1)
        .at_most(4096);
    visit("max_new_tokens", max_new_tokens, "longest text in tokens").at_least(1);
    visit("temperature", temperature,
          "of the draws; for task grpo also of the distribution that is learnt")
        .above(0)
        .at_most(100);
    visit("top_p", top_p,
          "draws from the smallest set of likeliest tokens with at least this share; "
          "log-probabilities stay those of all tokens")
        .above(0)
        .at_most(1);
    visit("top_k", top_k, "draws from this many likeliest tokens; 0 = all").at_least(0);
    visit("min_p", min_p, "draws from tokens with at least this share of the likeliest one's")
        .at_least(0)
        .at_most(1);
    visit("stop", stop, "strings that end a text");
    visit("prompt", prompt,
          "file of the prompt, as `convoy process` reads it; empty = the problem alone");
    visit(
        "chat", chat,
        "on: prompts are user turns in the model's chat template; off: plain text; auto = on where "
        "the model has a template")
        .one_of({"auto", "on", "off"});
    visit("problem_field", problem_field, "column of the problem; empty = by the schema");
    visit("answer_field", answer_field, "column of the reference answer; empty = by the schema");
  }
};

struct PolicySettings {
  std::string loss = "dapo";
  double clip_low = 0.2;
  double clip_high = 0.2;
  double importance_cap = 3;
  double kl_beta = 0;
  std::string reference = "base";
  std::string scale_rewards = "auto";
  int64_t inner_steps = 1;
  bool mask_truncated = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("loss", loss, policy_loss_help()).one_of(policy_loss_words()).alias_at_root("train.loss");
    visit("clip_low", clip_low, "a ratio below 1 minus this brings no gradient; cispo: not read")
        .at_least(0);
    visit("clip_high", clip_high,
          "a ratio above 1 plus this brings no gradient; cispo: counts as 1 plus this")
        .at_least(0);
    visit("importance_cap", importance_cap,
          "most weight of a token by its probability under the trainer over that under the engine, "
          "where the two differ (GPUs; on CPUs the weight is 1); 0 = no weight")
        .at_least(0);
    visit("kl_beta", kl_beta,
          "weight of the divergence from the reference (k3 estimate, arXiv 2402.03300; rloo: "
          "the logarithm of the ratio, taken from the reward); 0 = none")
        .at_least(0);
    visit(
        "reference", reference,
        "the model that the divergence is measured from: base = model.name without an adapter (a "
        "second copy where the whole model trains), or a folder of a model or an adapter (a second "
        "model)");
    visit(
        "scale_rewards", scale_rewards,
        "divide advantages by the standard deviation of the rewards of their group, of the batch, "
        "or not; auto = as the paper of the loss")
        .one_of({"auto", "group", "batch", "none"});
    visit("inner_steps", inner_steps, "optimizer steps on the same texts").at_least(1);
    visit("mask_truncated", mask_truncated, "texts that rollout.max_new_tokens cut bring no loss");
  }
};

}  // namespace convoy::settings
