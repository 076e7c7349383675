// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <re2/re2.h>

#include "convoy/core/base/error.h"
#include "convoy/data/evaluate/json_schema.h"
#include "convoy/farm/rewards/judged_text.h"
#include "convoy/farm/rewards/reward_kinds.h"

namespace convoy::rewards {
namespace {

class SchemaReward final : public Reward {
 public:
  explicit SchemaReward(evaluate::JsonSchema schema) : schema_(std::move(schema)) {}

  void ask(std::span<const JudgedText> texts, const std::function<bool()>& /*stop_requested*/,
           const TakeValue& take) override {
    for (size_t text = 0; text < texts.size(); ++text)
      take(text, schema_.accepts_text(texts[text].text) ? 1 : 0);
  }

 private:
  evaluate::JsonSchema schema_;
};

// RE2 takes time linear in the text, whatever the pattern.
class PatternReward final : public Reward {
 public:
  explicit PatternReward(const settings::RewardSettings& settings)
      : pattern_(settings.pattern, RE2::Quiet) {
    if (!pattern_.ok())
      throw ConfigError(
          fmt::format("`{}` is no regular expression: {}", settings.pattern, pattern_.error()),
          {.hint = "write it in RE2's syntax: Python's without (?=...), (?!...) and \\1; (?s) lets "
                   "a point match line breaks"});
  }

  void ask(std::span<const JudgedText> texts, const std::function<bool()>& /*stop_requested*/,
           const TakeValue& take) override {
    for (size_t text = 0; text < texts.size(); ++text)
      take(text, RE2::FullMatch(texts[text].text, pattern_) ? 1 : 0);
  }

 private:
  RE2 pattern_;
};

}  // namespace

std::unique_ptr<Reward> make_format_reward(const settings::RewardSettings& settings) {
  using Made = std::unique_ptr<Reward>;
  if (!settings.schema.empty())
    return with_place_of(settings, "schema", [&]() -> Made {
      return std::make_unique<SchemaReward>(evaluate::JsonSchema::load(settings.schema));
    });
  return with_place_of(settings, "pattern",
                       [&]() -> Made { return std::make_unique<PatternReward>(settings); });
}

void check_format_reward(const settings::RewardSettings& settings) { make_format_reward(settings); }

}  // namespace convoy::rewards
