// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/preference_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"

namespace convoy::settings {

const PairLossFacts& pair_loss_named(std::string_view name) {
  const auto found = std::find_if(kPairLosses.begin(), kPairLosses.end(),
                                  [&](const PairLossFacts& loss) { return loss.name == name; });
  if (found != kPairLosses.end()) return *found;
  const std::vector<std::string> words = pair_loss_words();
  throw ConfigError(fmt::format("preference.loss must be one of {}, found `{}`{}",
                                fmt::join(words, ", "), name, did_you_mean(name, words)),
                    {.key = "preference.loss"});
}

std::vector<std::string> pair_loss_words() {
  std::vector<std::string> words;
  for (const PairLossFacts& loss : kPairLosses) words.emplace_back(loss.name);
  return words;
}

std::string pair_loss_help() {
  std::string help = "task dpo";
  for (const PairLossFacts& loss : kPairLosses)
    help += fmt::format("; {}: {}", loss.name, loss.paper);
  return help;
}

}  // namespace convoy::settings
