// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/parsing/any_reference.h"
#include "convoy/farm/process/stages/stage.h"
#include "convoy/farm/rewards/judged_text.h"
#include "convoy/farm/rewards/reward_kinds.h"

namespace convoy::rewards {
namespace {

class AnswerReward final : public Reward {
 public:
  explicit AnswerReward(settings::RewardSettings settings) : settings_(std::move(settings)) {}

  void ask(std::span<const JudgedText> texts, const std::function<bool()>& stop_requested,
           const TakeValue& take) override {
    for (size_t text = 0; text < texts.size(); ++text) {
      check_stop(stop_requested);
      take(text, value_of(texts[text]));
    }
  }

 private:
  // The text is read as the stage `verify` of data processing reads one.
  double value_of(const JudgedText& text) const {
    if (text.answers.empty())
      refuse_text(settings_, text, "the row has no reference answer",
                  "name the column with rollout.answer_field, or take the row out of the data");
    process::KeptStep step;
    step.result.text = text.text;
    if (text.is_truncated) step.result.finish = process::TextFinish::Length;
    const process::Version version = process::read_version(step, text.begins_in_think);
    const bool is_right = version.answer && process::verdict_on(text.answers, *version.answer) ==
                                                answers::Verdict::Yes;
    return is_right ? 1 : 0;
  }

  settings::RewardSettings settings_;
};

}  // namespace

std::string use_of_compared_answers(const settings::RewardSettings& settings) {
  return fmt::format("reward `{}` compares with it", settings.name);
}

std::unique_ptr<Reward> make_answer_reward(const settings::RewardSettings& settings) {
  return std::make_unique<AnswerReward>(settings);
}

}  // namespace convoy::rewards
