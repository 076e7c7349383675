// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "convoy/farm/rewards/reward_kinds.h"

namespace convoy::rewards {
namespace {

class LengthReward final : public Reward {
 public:
  explicit LengthReward(settings::RewardSettings settings) : settings_(std::move(settings)) {}

  void ask(std::span<const JudgedText> texts, const std::function<bool()>& /*stop_requested*/,
           const TakeValue& take) override {
    for (size_t text = 0; text < texts.size(); ++text) take(text, value_of(texts[text].tokens));
  }

 private:
  double value_of(int64_t tokens) const {
    const auto span = static_cast<double>(settings_.most_tokens - settings_.target_tokens);
    const double left = static_cast<double>(settings_.most_tokens - tokens) / span;
    return std::clamp(left, 0.0, 1.0) - (settings_.form == "punishment" ? 1 : 0);
  }

  settings::RewardSettings settings_;
};

}  // namespace

std::unique_ptr<Reward> make_length_reward(const settings::RewardSettings& settings) {
  return std::make_unique<LengthReward>(settings);
}

}  // namespace convoy::rewards
