// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/policy_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"

namespace convoy::settings {

const PolicyLossFacts& policy_loss_named(std::string_view name) {
  const auto found = std::find_if(kPolicyLosses.begin(), kPolicyLosses.end(),
                                  [&](const PolicyLossFacts& loss) { return loss.name == name; });
  if (found != kPolicyLosses.end()) return *found;
  const std::vector<std::string> words = policy_loss_words();
  throw ConfigError(fmt::format("policy.loss must be one of {}, found `{}`{}",
                                fmt::join(words, ", "), name, did_you_mean(name, words)),
                    {.key = "policy.loss", .hint = "choose one of them, or leave it out"});
}

std::vector<std::string> policy_loss_words() {
  std::vector<std::string> words;
  for (const PolicyLossFacts& loss : kPolicyLosses) words.emplace_back(loss.name);
  return words;
}

std::string policy_loss_help() {
  std::vector<std::string> meanings;
  for (const PolicyLossFacts& loss : kPolicyLosses)
    meanings.push_back(fmt::format("{}: {}", loss.name, loss.paper));
  return fmt::format("{}", fmt::join(meanings, "; "));
}

}  // namespace convoy::settings
