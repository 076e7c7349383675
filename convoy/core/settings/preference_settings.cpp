// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/preference_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"

namespace convoy::settings {
namespace {

template <class Losses>
std::vector<std::string> words_of(const Losses& losses) {
  std::vector<std::string> words;
  for (const auto& loss : losses) words.emplace_back(loss.name);
  return words;
}

template <class Losses>
const auto& loss_named(std::string_view name, const Losses& losses) {
  if (name == kLossOfTask) return losses.front();
  const auto found = std::find_if(losses.begin(), losses.end(),
                                  [&](const auto& loss) { return loss.name == name; });
  if (found != losses.end()) return *found;
  const std::vector<std::string> words = words_of(losses);
  throw ConfigError(fmt::format("preference.loss must be one of {}, found `{}`{}",
                                fmt::join(words, ", "), name, did_you_mean(name, words)),
                    {.key = "preference.loss", .hint = "choose one of them, or leave it out"});
}

template <class Losses>
std::string meanings_of(const Losses& losses) {
  std::string text;
  for (const auto& loss : losses) text += fmt::format("; {}: {}", loss.name, loss.paper);
  return text;
}

}  // namespace

const PairLossFacts& pair_loss_named(std::string_view name) {
  return loss_named(name, kPairLosses);
}

const UnpairedLossFacts& unpaired_loss_named(std::string_view name) {
  return loss_named(name, kUnpairedLosses);
}

std::vector<std::string> pair_loss_words() { return words_of(kPairLosses); }

std::vector<std::string> unpaired_loss_words() { return words_of(kUnpairedLosses); }

std::vector<std::string> loss_words() {
  std::vector<std::string> words = {kLossOfTask};
  for (std::string& word : pair_loss_words()) words.push_back(std::move(word));
  for (std::string& word : unpaired_loss_words()) words.push_back(std::move(word));
  return words;
}

std::string loss_help() {
  return fmt::format("{} = {} for task dpo, {} for kto; task dpo{}; task kto{}", kLossOfTask,
                     kPairLosses.front().name, kUnpairedLosses.front().name,
                     meanings_of(kPairLosses), meanings_of(kUnpairedLosses));
}

}  // namespace convoy::settings
