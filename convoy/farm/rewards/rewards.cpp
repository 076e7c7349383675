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
  void (*check)(const settings::RewardSettings& settings);  // null: it names nothing outside
};

constexpr std::array<RewardKind, 6> kKinds = {{
    {"answer", make_answer_reward, nullptr},
    {"format", make_format_reward, check_format_reward},
    {"length", make_length_reward, nullptr},
    {"command", make_command_reward, check_command_reward},
    {"http", make_http_reward, check_http_reward},
    {"judge", make_judge_reward, check_judge_reward},
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

std::vector<std::string> columns_of_reward(const settings::RewardSettings& settings) {
  return settings.kind == "judge" ? columns_of_judge(settings) : std::vector<std::string>();
}

std::unique_ptr<Reward> make_reward(const settings::RewardSettings& settings) {
  return kind_of(settings).make(settings);
}

}  // namespace convoy::rewards
