// SPDX-License-Identifier: Apache-2.0
//
// A command whose actions share one struct of flags, of which each reads some: `convoy runs tail
// --follow`.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/apps/front/command.h"
#include "convoy/base/error.h"
#include "convoy/base/suggest.h"

namespace convoy::apps {

using FlagNames = std::vector<std::string>;

// A table of the flags that `own` names.
template <class Flags>
std::function<std::string()> table_of(FlagNames own) {
  return [own = std::move(own)] {
    Flags all;
    config::Section list = config::list_fields(all);
    std::erase_if(list.fields, [&own](const config::Field& field) {
      return std::find(own.begin(), own.end(), field.name) == own.end();
    });
    return config::flag_table(list);
  };
}

// Throws ConfigError where a flag is set that `own` does not name. `words` call the action: "runs
// tail".
template <class Flags>
void refuse_all_but(const FlagNames& own, Flags flags, std::string_view words) {
  FlagNames others;
  for (const config::Field& field : config::list_fields(flags).fields)
    if (std::find(own.begin(), own.end(), field.name) == own.end()) others.push_back(field.name);
  config::refuse_without_effect(flags, others, fmt::format("in `convoy {}`", words));
}

template <class Flags>
struct SharedAction {
  std::string_view name;
  std::string_view summary;
  std::string_view usage;
  std::string_view examples;
  FlagNames flags;  // that it reads
  // `words`: what follows the name.
  int (*run)(const Context& context, const Flags& flags, const std::vector<std::string>& words);
};

template <class Flags>
std::vector<Action> shown_actions(const std::vector<SharedAction<Flags>>& actions) {
  std::vector<Action> shown;
  for (const SharedAction<Flags>& action : actions)
    shown.push_back({action.name, action.summary, action.usage, table_of<Flags>(action.flags),
                     action.examples});
  return shown;
}

// Runs the action that the first word names, or where there is no word that called `usual`. Throws
// ConfigError where there is no such action, and for a flag that it does not read.
template <class Flags>
int run_shared_action(Context& context, std::string_view command,
                      const std::vector<SharedAction<Flags>>& actions, std::string_view usual,
                      const std::vector<std::string>& arguments) {
  Flags flags;
  std::vector<std::string> words = context.parse(flags, arguments);
  std::vector<std::string> names;
  for (const SharedAction<Flags>& action : actions) names.emplace_back(action.name);
  const std::string known = fmt::format("{}", fmt::join(names, ", "));
  if (words.empty() && usual.empty())
    throw ConfigError(fmt::format("`convoy {}` needs an action: {}", command, known));
  const std::string wanted = words.empty() ? std::string(usual) : words.front();
  if (!words.empty()) words.erase(words.begin());
  const auto found = std::find_if(actions.begin(), actions.end(),
                                  [&](const auto& action) { return action.name == wanted; });
  if (found == actions.end())
    throw ConfigError(fmt::format("unknown action `{}`{}", wanted, did_you_mean(wanted, names)),
                      {.key = wanted, .hint = known});
  refuse_all_but(found->flags, flags, fmt::format("{} {}", command, wanted));
  return found->run(context, flags, words);
}

}  // namespace convoy::apps
