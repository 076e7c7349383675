// SPDX-License-Identifier: Apache-2.0
//
// `convoy complete -- WORD...`, which the shells call, and what it answers.
#include "convoy/apps/front/help/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <variant>

#include "convoy/core/settings/train_settings.h"

namespace convoy::apps {
namespace {

// Commands that accept KEY=VALUE words with keys of the training configuration.
constexpr std::array<std::string_view, 4> kTakeKeys = {"train", "eval", "config", "profile"};

struct Place {
  const Command* command = nullptr;  // null: the command is being typed, or unknown
  const Command* action = nullptr;

  const Command& part() const { return action != nullptr ? *action : *command; }
};

Place place_of(const Words& before) {
  Place place;
  if (before.empty()) return place;
  for (const Command& command : commands())
    if (command.name == config::dashed(before.front())) place.command = &command;
  if (place.command != nullptr)
    place.action = find_action(*place.command, {before.begin() + 1, before.end()});
  return place;
}

// The fields of all flags of a command. The members to which they point have the defaults.
std::vector<config::Field> fields_of(const Command& command) {
  static CommonFlags common;
  std::vector<config::Field> fields;
  const auto add = [&](const config::Section& list) {
    for (const config::Field& field : list.fields)
      if (!field.hidden) fields.push_back(field);
  };
  for (const FlagGroup& group : command.flags) add(group.fields());
  add(config::list_fields(common));
  return fields;
}

bool is_switch(const config::Field& field) { return std::holds_alternative<bool*>(field.value); }

std::string first_sentence(const std::string& help) { return help.substr(0, help.find(';')); }

void add_if(std::vector<Candidate>& found, const std::string& typed, std::string word,
            std::string help) {
  if (word.starts_with(typed)) found.push_back({std::move(word), std::move(help)});
}

void add_names(std::vector<Candidate>& found, const std::string& typed,
               const std::vector<Command>& named) {
  for (const Command& command : named)
    if (!command.hidden)
      add_if(found, typed, std::string(command.name), std::string(command.summary));
}

std::vector<Candidate> values_of(const config::Field& field, const std::string& prefix,
                                 const std::string& typed) {
  std::vector<Candidate> found;
  for (const std::string& choice : field.choices) add_if(found, typed, prefix + choice, "");
  if (is_switch(field))
    for (const char* const word : {"true", "false"}) add_if(found, typed, prefix + word, "");
  return found;
}

// The field that a word such as `--ranks` names.
std::optional<config::Field> flag_named(const Command& command, const std::string& word) {
  if (!word.starts_with("--")) return std::nullopt;
  for (const config::Field& field : fields_of(command))
    if (config::is_flag_of(field, std::string_view(word).substr(2))) return field;
  return std::nullopt;
}

void add_keys(std::vector<Candidate>& found, const std::string& typed,
              const config::Section& section, const std::string& prefix) {
  for (const config::Field& field : section.fields) {
    const std::string key = prefix + field.name + "=";
    if (typed.starts_with(key))
      for (Candidate& value : values_of(field, key, typed)) found.push_back(std::move(value));
    else if (!field.hidden)
      add_if(found, typed, key, first_sentence(field.help));
  }
  for (const config::Section& inner : section.sections)
    add_keys(found, typed, inner, prefix + inner.name + ".");
}

std::vector<Candidate> flags_of_part(const Command& part, const std::string& typed) {
  std::vector<Candidate> found;
  if (const size_t equals = typed.find('='); equals != std::string::npos) {
    const auto field = flag_named(part, typed.substr(0, equals));
    return field ? values_of(*field, typed.substr(0, equals + 1), typed) : found;
  }
  for (const config::Field& field : fields_of(part))
    add_if(found, typed, "--" + config::flag_word(field), first_sentence(field.help));
  add_if(found, typed, "--help", "show flags and examples");
  return found;
}

int run_complete(Context&, const Words& arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  const Words words(dashes == arguments.end() ? dashes : dashes + 1, arguments.end());
  fmt::print("{}", candidate_lines(candidates(words)));
  return 0;
}

}  // namespace

std::vector<Candidate> candidates(const Words& words) {
  if (words.empty()) return candidates({""});
  const std::string& typed = words.back();
  const Words before(words.begin(), words.end() - 1);
  std::vector<Candidate> found;
  if (before.empty() || (before == Words{"help"})) {
    add_names(found, typed, commands());
    if (before.empty()) {
      add_if(found, typed, "--help", "list the commands");
      add_if(found, typed, "--version", "print the version");
    }
    return found;
  }
  const Place place =
      place_of(before[0] == "help" ? Words(before.begin() + 1, before.end()) : before);
  if (place.command == nullptr) return found;
  const Command& part = place.part();
  if (typed.starts_with('-')) return flags_of_part(part, typed);
  if (const auto flag = flag_named(part, before.back()); flag && !is_switch(*flag))
    return values_of(*flag, "", typed);
  if (place.action == nullptr &&
      std::none_of(before.begin() + 1, before.end(),
                   [](const auto& word) { return !word.starts_with('-'); }))
    add_names(found, typed, place.command->actions);
  const bool takes_keys =
      std::find(kTakeKeys.begin(), kTakeKeys.end(), place.command->name) != kTakeKeys.end();
  if (takes_keys && !typed.empty() && typed.find('/') == std::string::npos) {
    static settings::TrainSettings defaults;
    add_keys(found, typed, config::list_fields(defaults), "");
  }
  return found;
}

std::string candidate_lines(const std::vector<Candidate>& found) {
  std::string text;
  for (const Candidate& one : found) text += fmt::format("{}\t{}\n", one.word, one.help);
  return text;
}

Command complete_command() {
  return {.name = "complete",
          .summary = "List the words that may come next, for shells",
          .usage = "convoy complete -- WORD...",
          .examples = "",
          .run = run_complete,
          .hidden = true};
}

}  // namespace convoy::apps
