// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/farm/rewards/reward.h"
#include "convoy/farm/rewards/reward_kinds.h"

namespace convoy::rewards {
namespace {

struct RewardKind {
  std::string_view name;
  std::unique_ptr<Reward> (*make)(const settings::RewardSettings& settings);
  // Null: it names nothing outside.
  void (*check)(const settings::RewardSettings& settings) = nullptr;
  // As use_of_answers() and columns_of_reward(). Null: nothing of a row by name.
  std::string (*use_of_answers)(const settings::RewardSettings& settings) = nullptr;
  std::vector<std::string> (*columns)(const settings::RewardSettings& settings) = nullptr;
  Asking asking = {};
  bool checks_answers = false;
};

constexpr std::array<RewardKind, 6> kKinds = {{
    {.name = "answer",
     .make = make_answer_reward,
     .use_of_answers = use_of_compared_answers,
     .checks_answers = true},
    {.name = "format", .make = make_format_reward, .check = check_format_reward},
    {.name = "length", .make = make_length_reward},
    {.name = "command",
     .make = make_command_reward,
     .check = check_command_reward,
     .asking = {.is_elsewhere = true}},
    {.name = "http",
     .make = make_http_reward,
     .check = check_http_reward,
     .asking = {.is_elsewhere = true, .takes_lists = true}},
    {.name = "judge",
     .make = make_judge_reward,
     .check = check_judge_reward,
     .use_of_answers = use_of_judged_answers,
     .columns = columns_of_judge,
     .asking = {.is_elsewhere = true}},
}};

const RewardKind& kind_of(const settings::RewardSettings& settings) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(), [&](const RewardKind& kind) {
    return kind.name == settings.kind;
  });
  CONVOY_INVARIANT(found != kKinds.end(), "a reward of kind `{}`", settings.kind);
  return *found;
}

}  // namespace

std::vector<double> Reward::values(std::span<const JudgedText> texts,
                                   const std::function<bool()>& stop_requested) {
  std::vector<double> values(texts.size());
  ask(texts, stop_requested, [&](size_t text, double value) { values.at(text) = value; });
  return values;
}

void check_reward(const settings::RewardSettings& settings) {
  if (const auto check = kind_of(settings).check) check(settings);
}

Asking asking_of(const settings::RewardSettings& settings) { return kind_of(settings).asking; }

bool checks_answers(const settings::RewardSettings& settings) {
  return kind_of(settings).checks_answers;
}

std::string use_of_answers(const settings::RewardSettings& settings) {
  const auto use = kind_of(settings).use_of_answers;
  return use == nullptr ? "" : use(settings);
}

std::vector<std::string> columns_of_reward(const settings::RewardSettings& settings) {
  const auto columns = kind_of(settings).columns;
  return columns == nullptr ? std::vector<std::string>() : columns(settings);
}

std::unique_ptr<Reward> make_reward(const settings::RewardSettings& settings) {
  return kind_of(settings).make(settings);
}

}  // namespace convoy::rewards
