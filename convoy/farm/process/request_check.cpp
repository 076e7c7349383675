// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/request_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "convoy/core/base/error.h"

namespace convoy::process {
namespace {

struct StageTexts {
  std::string key;
  std::string flag;
  int64_t max_tokens = 0;
};

// The texts of the stages that generate text.
std::vector<StageTexts> texts_of(const settings::ProcessSettings& settings) {
  const auto has = [&](const char* stage) {
    return std::find(settings.stages.begin(), settings.stages.end(), stage) !=
           settings.stages.end();
  };
  std::vector<StageTexts> texts;
  if (has("generate"))
    texts.push_back({"generate.max_tokens", "--max-tokens", settings.generate.max_tokens});
  if (has("evaluate"))
    texts.push_back({"evaluate.max_tokens", "--evaluate-max-tokens", settings.evaluate.max_tokens});
  if (has("improve") && settings.improve.max_iterations > 0)
    texts.push_back({"improve.max_tokens", "--improve-max-tokens",
                     settings.improve.max_tokens.value.value_or(settings.generate.max_tokens)});
  return texts;
}

// Number of tokens whose keys and values must be kept at once. The keys and values of a text's last
// token are never read.
int64_t least_room(const StageTexts& text, const ModelFacts& model) {
  int64_t tokens = text.max_tokens;
  if (model.positions > 0) tokens = std::min(tokens, model.positions - 1);
  if (model.window_tokens > 0) tokens = std::min(tokens, model.window_tokens);
  return tokens;
}

}  // namespace

void require_possible_requests(const settings::ProcessSettings& settings, const ModelFacts& model) {
  for (const std::string& stop : settings.generate.stop.names)
    if (stop.empty())
      throw ConfigError("generate.stop: an empty string would end every text before it begins",
                        {.key = "generate.stop", .hint = "leave --stop out"});
  if (settings.engine.kv_blocks.is_auto()) return;
  const int64_t room = *settings.engine.kv_blocks.value * kKvBlockTokens;
  for (const StageTexts& text : texts_of(settings))
    if (room < least_room(text, model))
      throw ConfigError(
          fmt::format("engine.kv_blocks: {} blocks hold {} tokens, fewer than one text of {} = {}",
                      *settings.engine.kv_blocks.value, room, text.key, text.max_tokens),
          {.key = "engine.kv_blocks",
           .hint = fmt::format("raise --kv-blocks, or lower {}", text.flag)});
}

std::string request_warnings(const settings::ProcessSettings& settings, const ModelFacts& model) {
  for (const StageTexts& text : texts_of(settings))
    if (model.positions > 0 && text.max_tokens >= model.positions)
      return fmt::format(
          "{} is {}, but the model has {} positions for prompt and text: longer texts are cut",
          text.key, text.max_tokens, model.positions);
  return {};
}

}  // namespace convoy::process
