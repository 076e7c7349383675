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
};

constexpr std::array<RewardKind, 6> kKinds = {{
    {"answer", make_answer_reward},
    {"format", make_format_reward},
    {"length", make_length_reward},
    {"command", make_command_reward},
    {"http", make_http_reward},
    {"judge", make_judge_reward},
}};

}  // namespace

std::unique_ptr<Reward> make_reward(const settings::RewardSettings& settings) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(), [&](const RewardKind& kind) {
    return kind.name == settings.kind;
  });
  CONVOY_INVARIANT(found != kKinds.end(), "a reward of kind `{}`", settings.kind);
  return found->make(settings);
}

}  // namespace convoy::rewards
