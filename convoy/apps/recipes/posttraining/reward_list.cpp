// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/posttraining/reward_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::recipes {
namespace {

// Squares of rewards, and their sums over a step, are finite within this.
constexpr double kLargestReward = 1e100;

void require_usable(const settings::RewardSettings& reward, const rewards::JudgedText& text,
                    double value) {
  if (std::abs(value) <= kLargestReward && std::abs(reward.weight * value) <= kLargestReward)
    return;
  throw DataError(fmt::format("reward `{}`: row {}, sample {}: {:g} times the weight {:g} is too "
                              "large for a mean",
                              reward.name, text.row_number, text.sample, value, reward.weight),
                  {.hint = "give numbers and weights within 1e100"});
}

// A RewardedAnswer as words: problem, tokens, loss, rewards.
constexpr size_t kWords = 3;

// The answers of all ranks, by problem.
std::vector<RewardedAnswer> all_answers(const std::vector<RewardedAnswer>& own,
                                        int64_t num_problems, size_t num_rewards,
                                        comm::Group& group) {
  std::vector<double> sent;
  for (const RewardedAnswer& answer : own) {
    sent.push_back(static_cast<double>(answer.problem));
    sent.push_back(static_cast<double>(answer.tokens));
    sent.push_back(answer.loss);
    sent.insert(sent.end(), answer.rewards.begin(), answer.rewards.end());
  }
  std::vector<RewardedAnswer> all(static_cast<size_t>(num_problems));
  const size_t length = kWords + num_rewards;
  for (const std::string& bytes : group.all_gather_bytes(
           {reinterpret_cast<const char*>(sent.data()), sent.size() * sizeof(double)})) {
    std::vector<double> words(bytes.size() / sizeof(double));
    std::memcpy(words.data(), bytes.data(), bytes.size());
    for (size_t at = 0; at + length <= words.size(); at += length) {
      const double* const answer = words.data() + at;
      all.at(static_cast<size_t>(answer[0])) = {.problem = static_cast<int64_t>(answer[0]),
                                                .tokens = static_cast<int64_t>(answer[1]),
                                                .loss = answer[2],
                                                .rewards = {answer + kWords, answer + length}};
    }
  }
  return all;
}

}  // namespace

rewards::JudgedText judged_text(const RolloutProblem& problem, const AnswerFacts& answer) {
  return {.prompt = problem.text,
          .text = answer.text,
          .answers = problem.answers,
          .tokens = answer.tokens,
          .is_truncated = answer.is_truncated,
          .begins_in_think = problem.begins_in_think,
          .row = problem.row,
          .row_number = problem.row_number,
          .sample = answer.sample};
}

RewardList::RewardList(const config::JsonList& list) : settings_(settings::rewards_of(list)) {
  for (const settings::RewardSettings& reward : settings_) {
    rewards_.push_back(rewards::make_reward(reward));
    names_.push_back(reward.name);
  }
}

std::optional<size_t> RewardList::place_of_answers() const {
  const auto found = std::find_if(settings_.begin(), settings_.end(), rewards::checks_answers);
  if (found == settings_.end()) return std::nullopt;
  return static_cast<size_t>(found - settings_.begin());
}

void RewardList::ask(size_t part, const std::vector<rewards::JudgedText>& texts,
                     const std::function<bool()>& stop_requested, const rewards::TakeValue& take) {
  if (texts.empty()) return;
  std::vector<std::pair<size_t, double>> list;
  rewards_[part]->ask(texts, stop_requested, [&](size_t text, double value) {
    require_usable(settings_[part], texts[text], value);
    if (asking(part).takes_lists)
      list.emplace_back(text, value);
    else
      take(text, value);
  });
  for (const auto& [text, value] : list) take(text, value);
}

std::vector<std::vector<double>> RewardList::values(const std::vector<rewards::JudgedText>& texts,
                                                    const std::function<bool()>& stop_requested) {
  std::vector<std::vector<double>> values(texts.size(), std::vector<double>(size()));
  for (size_t part = 0; part < size(); ++part)
    ask(part, texts, stop_requested,
        [&](size_t text, double value) { values[text][part] = value; });
  return values;
}

double RewardList::weighed(const std::vector<double>& rewards) const {
  double sum = 0;
  for (size_t part = 0; part < rewards.size(); ++part)
    sum += settings_[part].weight * rewards[part];
  return sum;
}

train::Evaluation rewarded_evaluation(const std::vector<RewardedAnswer>& own, int64_t num_problems,
                                      const RewardList& rewards, comm::Group& group,
                                      bool has_losses) {
  group.wait_for_all();  // a rank's rewards may take longer than a collective waits
  double reward = 0;
  double loss = 0;
  std::vector<double> parts(rewards.size());
  int64_t tokens = 0;
  for (const RewardedAnswer& answer : all_answers(own, num_problems, rewards.size(), group)) {
    reward += rewards.weighed(answer.rewards);
    for (size_t part = 0; part < parts.size(); ++part) parts[part] += answer.rewards[part];
    tokens += answer.tokens;
    loss += answer.loss;
  }
  const auto count = static_cast<double>(num_problems);
  train::Evaluation evaluation{
      .loss = has_losses ? loss / std::max(static_cast<double>(tokens), 1.0) : -reward / count,
      .rows = num_problems,
      .batches = 1,
      .supervised_tokens = tokens};
  if (rewards.size() > 0) evaluation.others["reward"] = reward / count;
  for (size_t part = 0; part < parts.size(); ++part)
    evaluation.others[fmt::format("rewards/{}/mean", rewards.names()[part])] = parts[part] / count;
  evaluation.others["completions/mean_length"] = static_cast<double>(tokens) / count;
  if (const auto answers = rewards.place_of_answers())
    evaluation.others["accuracy"] = parts[*answers] / count;
  return evaluation;
}

}  // namespace convoy::recipes
