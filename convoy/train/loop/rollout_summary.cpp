// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/rollout_summary.h"

#include <algorithm>
#include <cstring>

#include "convoy/core/base/error.h"
#include "convoy/train/objectives/policy_loss.h"

namespace convoy::train {
namespace {

constexpr size_t kWords = 7;  // words of a summary before its rewards

void pack(const RolloutSummary& summary, std::vector<double>& words) {
  for (const double word :
       {static_cast<double>(summary.slot), summary.reward, summary.compared,
        static_cast<double>(summary.prompt_tokens), static_cast<double>(summary.text_tokens),
        summary.is_truncated ? 1.0 : 0.0, summary.surprise})
    words.push_back(word);
  words.insert(words.end(), summary.rewards.begin(), summary.rewards.end());
}

RolloutSummary unpack(std::span<const double> words) {
  return {.slot = static_cast<int64_t>(words[0]),
          .reward = words[1],
          .compared = words[2],
          .prompt_tokens = static_cast<int64_t>(words[3]),
          .text_tokens = static_cast<int64_t>(words[4]),
          .is_truncated = words[5] > 0,
          .surprise = words[6],
          .rewards = {words.begin() + kWords, words.end()}};
}

double mean_reward(std::span<const RolloutSummary> rollouts) {
  double sum = 0;
  for (const RolloutSummary& rollout : rollouts) sum += rollout.reward;
  return sum / static_cast<double>(rollouts.size());
}

double reward_deviation(std::span<const RolloutSummary> rollouts) {
  std::vector<double> rewards;
  for (const RolloutSummary& rollout : rollouts) rewards.push_back(rollout.reward);
  return objectives::deviation_of(rewards);
}

bool are_alike(std::span<const RolloutSummary> group) {
  return std::all_of(group.begin(), group.end(), [&](const RolloutSummary& rollout) {
    return rollout.compared == group.front().compared;
  });
}

}  // namespace

RolloutSummary summary_of(const Rollout& rollout, int64_t slot, double compared) {
  RolloutSummary summary{.slot = slot,
                         .reward = rollout.reward,
                         .compared = compared,
                         .prompt_tokens = rollout.prompt_tokens,
                         .text_tokens = rollout.text_tokens(),
                         .is_truncated = rollout.is_truncated,
                         .rewards = rollout.rewards};
  for (const float log_probability : rollout.drawn)
    summary.surprise -= static_cast<double>(log_probability);
  return summary;
}

std::vector<RolloutSummary> all_summaries(comm::Group& group,
                                          const std::vector<RolloutSummary>& own, size_t num_slots,
                                          size_t num_rewards) {
  std::vector<double> sent;
  for (const RolloutSummary& summary : own) pack(summary, sent);
  std::vector<RolloutSummary> all(num_slots);
  const size_t length = kWords + num_rewards;
  for (const std::string& bytes : group.all_gather_bytes(
           {reinterpret_cast<const char*>(sent.data()), sent.size() * sizeof(double)})) {
    std::vector<double> words(bytes.size() / sizeof(double));
    std::memcpy(words.data(), bytes.data(), words.size() * sizeof(double));
    for (size_t at = 0; at + length <= words.size(); at += length) {
      RolloutSummary summary = unpack(std::span(words).subspan(at, length));
      all.at(static_cast<size_t>(summary.slot)) = std::move(summary);
    }
  }
  for (size_t slot = 0; slot < all.size(); ++slot)
    CONVOY_INVARIANT(all[slot].slot >= 0, "no rank has rollout {} of the step", slot);
  return all;
}

std::map<std::string, double> rollout_figures(std::span<const RolloutSummary> all,
                                              int64_t group_size,
                                              const std::vector<std::string>& reward_names) {
  std::map<std::string, double> figures;
  if (all.empty()) return figures;
  const auto size = static_cast<size_t>(group_size);
  const auto rollouts = static_cast<double>(all.size());
  int64_t text_tokens = 0;
  int64_t longest = 0;
  double truncated = 0;
  double surprise = 0;
  for (const RolloutSummary& rollout : all) {
    text_tokens += rollout.text_tokens;
    longest = std::max(longest, rollout.text_tokens);
    truncated += rollout.is_truncated ? 1 : 0;
    surprise += rollout.surprise;
  }
  if (!reward_names.empty()) figures["reward"] = mean_reward(all);
  if (!reward_names.empty() && group_size > 1) {
    double deviations = 0;
    double groups_alike = 0;
    for (size_t start = 0; start < all.size(); start += size) {
      deviations += reward_deviation(all.subspan(start, size));
      groups_alike += are_alike(all.subspan(start, size)) ? 1 : 0;
    }
    const double groups = rollouts / static_cast<double>(group_size);
    figures["reward_std"] = deviations / groups;
    figures["frac_reward_zero_std"] = groups_alike / groups;
  }
  figures["completions/mean_length"] = static_cast<double>(text_tokens) / rollouts;
  figures["completions/max_length"] = static_cast<double>(longest);
  figures["completions/clipped_ratio"] = truncated / rollouts;
  figures["entropy"] = surprise / static_cast<double>(std::max<int64_t>(1, text_tokens));
  for (size_t part = 0; part < reward_names.size(); ++part) {
    double sum = 0;
    for (const RolloutSummary& rollout : all) sum += rollout.rewards[part];
    figures[fmt::format("rewards/{}/mean", reward_names[part])] = sum / rollouts;
  }
  return figures;
}

}  // namespace convoy::train
