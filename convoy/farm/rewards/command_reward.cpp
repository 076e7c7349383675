// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "convoy/farm/rewards/judged_text.h"
#include "convoy/farm/rewards/reward_kinds.h"
#include "convoy/farm/rewards/reward_program.h"

namespace convoy::rewards {
namespace {

constexpr const char* kHint =
    "the program reads one JSON line per text and writes one number per line, each flushed, in the "
    "same order";

ProgramLimits limits_of(const settings::RewardSettings& settings) {
  ProgramLimits limits{.step_seconds = settings.timeout_s};
  limits.start_seconds = std::max(limits.start_seconds, settings.timeout_s);
  return limits;
}

class CommandReward final : public Reward {
 public:
  explicit CommandReward(settings::RewardSettings settings)
      : settings_(std::move(settings)), program_(settings_.command, limits_of(settings_)) {}

  std::vector<double> values(std::span<const JudgedText> texts,
                             const std::function<bool()>& stop_requested) override {
    std::vector<std::string> lines;
    for (const JudgedText& text : texts) lines.push_back(line_of(json_of(text)));
    std::vector<double> numbers;
    const auto fault = program_.ask(lines, numbers, [&] { check_stop(stop_requested); });
    if (fault) refuse_text(settings_, texts[fault->text], fault->what, kHint);
    return numbers;
  }

 private:
  settings::RewardSettings settings_;
  RewardProgram program_;
};

}  // namespace

std::unique_ptr<Reward> make_command_reward(const settings::RewardSettings& settings) {
  return std::make_unique<CommandReward>(settings);
}

}  // namespace convoy::rewards
