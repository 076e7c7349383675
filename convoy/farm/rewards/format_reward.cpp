// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <re2/re2.h>

#include <optional>

#include "convoy/core/base/error.h"
#include "convoy/data/evaluate/json_schema.h"
#include "convoy/farm/rewards/reward_kinds.h"

namespace convoy::rewards {
namespace {

class SchemaReward final : public Reward {
 public:
  explicit SchemaReward(evaluate::JsonSchema schema) : schema_(std::move(schema)) {}

  std::vector<double> values(std::span<const JudgedText> texts,
                             const std::function<bool()>& /*stop_requested*/) override {
    std::vector<double> values;
    for (const JudgedText& text : texts) values.push_back(schema_.accepts_text(text.text) ? 1 : 0);
    return values;
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
          fmt::format("reward `{}`: `{}` is no regular expression: {}", settings.name,
                      settings.pattern, pattern_.error()),
          {.key = "reward.pattern",
           .hint = "write it in RE2's syntax: Python's without (?=...), (?!...) and \\1; (?s) lets "
                   "a point match line breaks"});
  }

  std::vector<double> values(std::span<const JudgedText> texts,
                             const std::function<bool()>& /*stop_requested*/) override {
    std::vector<double> values;
    for (const JudgedText& text : texts)
      values.push_back(RE2::FullMatch(text.text, pattern_) ? 1 : 0);
    return values;
  }

 private:
  RE2 pattern_;
};

}  // namespace

std::unique_ptr<Reward> make_format_reward(const settings::RewardSettings& settings) {
  if (!settings.schema.empty())
    return std::make_unique<SchemaReward>(evaluate::JsonSchema::load(settings.schema));
  return std::make_unique<PatternReward>(settings);
}

}  // namespace convoy::rewards
