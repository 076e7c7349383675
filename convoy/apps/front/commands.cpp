// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/peers/guide_words.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/config/document.h"
#include "convoy/launch/submit/quoting.h"

namespace convoy::apps {
namespace {

// Command words of earlier versions and of the guides. Convoy still accepts them.
struct OldWords {
  Words before;
  Words now;
};

const std::vector<OldWords>& old_words() {
  static const std::vector<OldWords> list = {
      {{"merge"}, {"models", "merge"}},        {{"quantize"}, {"models", "quantize"}},
      {{"tokens"}, {"data", "tokens"}},        {{"data", "process"}, {"data", "prepare"}},
      {{"score"}, {"eval", "--per-row"}},      {{"process", "monitor"}, {"runs", "watch"}},
      {{"gpu-info"}, {"gpus", "show"}},        {{"topo"}, {"gpus", "topology"}},
      {{"memory-check"}, {"gpus", "memory"}},  {{"monitor"}, {"gpus", "watch"}},
      {{"sweep", "test"}, {"sweep", "check"}},
  };
  return list;
}

bool starts_with(const Words& words, const Words& start) {
  return words.size() >= start.size() &&
         std::equal(start.begin(), start.end(), words.begin(),
                    [](const std::string& wanted, const std::string& word) {
                      return wanted == config::dashed(word);
                    });
}

// Returns the index of the action's name in `arguments`. It is 0, unless the command only has
// actions and flags precede the name.
size_t action_place(const Command& command, const Words& arguments) {
  if (command.run != nullptr || arguments.empty() || !arguments.front().starts_with('-')) return 0;
  for (size_t at = 0; at < arguments.size(); ++at)
    if (find_action(command, {arguments[at]}) != nullptr) return at;
  return arguments.size();
}

bool has_flag(const Command& action, std::string_view flag) {
  return std::any_of(action.flags.begin(), action.flags.end(), [flag](const FlagGroup& group) {
    const config::Section list = group.fields();
    return std::any_of(list.fields.begin(), list.fields.end(), [flag](const config::Field& field) {
      return config::is_flag_of(field, flag);
    });
  });
}

// Returns `text` with `typed` in place of every whole word `flag`.
std::string respelt(std::string text, const std::string& flag, const std::string& typed) {
  for (size_t at = text.find(flag); at != std::string::npos;
       at = text.find(flag, at + typed.size())) {
    const size_t end = at + flag.size();
    if (end < text.size() && (text[end] == '-' || std::isalnum(text[end]) != 0)) continue;
    text.replace(at, flag.size(), typed);
  }
  return text;
}

// Returns the last of `words` that is another spelling of `flag`; empty when there is none. `field`
// is the field of `flag`.
std::string typed_for(const std::string& flag, const config::Field& field, const Words& words) {
  std::string typed;
  for (const std::string& argument : words) {
    const std::string word = argument.substr(0, argument.find('='));
    if (word == "--" || word == flag) break;
    const size_t name = word.find_first_not_of('-');
    if (name != 0 && name != std::string::npos && config::is_flag_of(field, word.substr(name)))
      typed = word;
  }
  return typed;
}

// An error spells a flag as the help text does. Returns the error with the spelling that the user
// typed.
ConfigError as_typed(const ConfigError& error, const Command& command, const Words& arguments) {
  std::string message = error.what();
  ErrorLocation location = error.location();
  for (const FlagGroup& group : command.flags) {
    const config::Section list = group.fields();
    for (const config::Field& field : list.fields) {
      const std::string flag = "--" + config::flag_word(field);
      const std::string typed = typed_for(flag, field, arguments);
      if (typed.empty()) continue;
      for (std::string* text : {&message, &location.hint, &location.key})
        *text = respelt(std::move(*text), flag, typed);
    }
  }
  return ConfigError(message, std::move(location));
}

int run_named(Context& context, const Command& command, const Words& arguments) {
  try {
    return command.run(context, arguments);
  } catch (const ConfigError& error) {
    throw as_typed(error, command, arguments);
  }
}

// Runs the action. When an unknown flag belongs to another action, the error names that action.
int run_action(Context& context, const Command& command, const Command& action,
               const Words& arguments) {
  try {
    return run_named(context, action, arguments);
  } catch (const ConfigError& error) {
    const std::string& flag = error.location().key;
    if (!flag.starts_with("--") || !std::string_view(error.what()).starts_with("unknown flag"))
      throw;
    for (const Command& other : command.actions)
      if (has_flag(other, flag.substr(2)))
        throw ConfigError(
            fmt::format("{} has no effect in `convoy {} {}`", flag, command.name, action.name),
            {.key = flag,
             .hint = fmt::format("`convoy {} {}` has it; this one is `{}`", command.name,
                                 other.name, action.usage.substr(0, action.usage.find('\n')))});
    throw;
  }
}

// Returns the keys of the file that --config names. Returns none when the file cannot be read: the
// action reports that error later.
Words keys_of_config(const Words& arguments) {
  std::string file;
  for (size_t at = 0; at < arguments.size(); ++at) {
    if (arguments[at] == "--config" && at + 1 < arguments.size()) file = arguments[at + 1];
    if (arguments[at].starts_with("--config=")) file = arguments[at].substr(9);
  }
  Words keys;
  if (file.empty()) return keys;
  try {
    for (const auto& [key, value] : config::load_yaml(file).entries) keys.push_back(key);
  } catch (const Error&) {
    keys.clear();
  }
  return keys;
}

// Returns the actions that have all flags in `arguments` and all keys of the --config file. When no
// action has all of them, the keys of the file are ignored. Returns none without a flag.
std::vector<const Command*> actions_of_flags(const Command& command, const Words& arguments) {
  Words flags;
  for (const std::string& argument : arguments)
    if (argument.starts_with("--")) flags.push_back(argument.substr(2, argument.find('=') - 2));
  const auto with = [&](const Words& names) {
    std::vector<const Command*> found;
    for (const Command& action : command.actions)
      if (std::all_of(names.begin(), names.end(),
                      [&](const std::string& name) { return has_flag(action, name); }))
        found.push_back(&action);
    return found;
  };
  if (flags.empty()) return {};
  Words names = keys_of_config(arguments);
  names.insert(names.end(), flags.begin(), flags.end());
  std::vector<const Command*> found = with(names);
  return found.empty() ? with(flags) : found;
}

[[noreturn]] void refuse_flags_alone(const Command& command,
                                     const std::vector<const Command*>& actions,
                                     const Words& arguments) {
  Words lines;
  for (const Command* const action : actions)
    lines.push_back(fmt::format("convoy {} {}", command.name, action->name));
  throw ConfigError(fmt::format("`convoy {}` needs an action", command.name),
                    {.hint = fmt::format("these are flags of `{}`: {} {}", fmt::join(lines, "`, `"),
                                         lines.front(), launch::shell_words(arguments))});
}

}  // namespace

// The one registry of commands.
const std::vector<Command>& commands() {
  static const std::vector<Command> list = {
      init_command(),           doctor_command(),   help_command(),    models_command(),
      data_command(),           config_command(),   train_command(),   eval_command(),
      generate_command(),       serve_command(),    process_command(), launch_command(),
      submit_command(),         sweep_command(),    runs_command(),    gpus_command(),
      profile_command(),        bench_command(),    store_command(),   sweep_worker_command(),
      process_worker_command(), complete_command(),
  };
  return list;
}

Words current_words(Words words) {
  for (const OldWords& old : old_words()) {
    if (!starts_with(words, old.before)) continue;
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(old.before.size()));
    words.insert(words.begin(), old.now.begin(), old.now.end());
    break;
  }
  return words;
}

std::vector<std::string> old_spellings() {
  std::vector<std::string> spellings;
  for (const OldWords& old : old_words())
    spellings.push_back(fmt::format("{}", fmt::join(old.before, " ")));
  return spellings;
}

const Command* find_action(const Command& command, const Words& words) {
  if (words.empty()) return nullptr;
  const std::string wanted = config::dashed(words.front());
  for (const Command& action : command.actions)
    if (action.name == wanted) return &action;
  return nullptr;
}

int run_command(Context& context, const Command& command, const Words& arguments) {
  if (command.actions.empty()) return run_named(context, command, arguments);
  const size_t place = action_place(command, arguments);
  const bool is_named = place < arguments.size();
  const Command* action = is_named ? find_action(command, {arguments[place]}) : nullptr;
  if (action != nullptr) {
    Words rest = arguments;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(place));
    return run_action(context, command, *action, rest);
  }
  if (command.run != nullptr) return run_named(context, command, arguments);
  if (!is_named && !command.usual_action.empty())
    return run_action(context, command, *find_action(command, {std::string(command.usual_action)}),
                      arguments);
  std::vector<std::string> names;
  for (const Command& one : command.actions)
    if (!one.hidden) names.emplace_back(one.name);
  const std::string known = fmt::format("{}", fmt::join(names, ", "));
  for (const OldWords& old : old_words())
    if (old.before.size() == 2 && old.before.front() == command.name)
      names.push_back(old.before.back());
  if (is_named) {
    const Words rest(arguments.begin() + static_cast<std::ptrdiff_t>(place) + 1, arguments.end());
    if (const std::string hint = hint_for_script(arguments[place], rest); !hint.empty())
      throw ConfigError(fmt::format("unknown action `{}`", arguments[place]),
                        {.key = arguments[place], .hint = hint});
    throw ConfigError(fmt::format("unknown action `{}`{}", arguments[place],
                                  did_you_mean(arguments[place], names)),
                      {.key = arguments[place], .hint = known});
  }
  if (const auto meant = actions_of_flags(command, arguments); !meant.empty())
    refuse_flags_alone(command, meant, arguments);
  print_help(help_text(command));
  throw ConfigError(fmt::format("`convoy {}` needs an action", command.name), {.hint = known});
}

}  // namespace convoy::apps
