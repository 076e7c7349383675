// SPDX-License-Identifier: Apache-2.0
//
// `convoy help`, and every help text: generated from the command registry, for the terminal and for
// docs/reference/commands.md.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/help/exit_codes.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/base/terminal_size.h"

namespace convoy::apps {
namespace {

struct HelpFlags {
  bool all = false;
  bool markdown = false;
  bool man = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("all", all, "show every flag, as `convoy COMMAND --help-all` does");
    visit("markdown", markdown, "print docs/reference/commands.md");
    visit("man", man, "print the page for man(1): convoy help --man | man -l -");
  }
};

std::string indented(std::string_view lines) {
  std::string out;
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    out += fmt::format("  {}\n", lines.substr(0, end));
    lines = end == std::string_view::npos ? std::string_view() : lines.substr(end + 1);
  }
  return out;
}

// Returns the first action named by the words, else the command itself.
const Command& named_part(const Command& command, const Words& words) {
  for (const std::string& word : words)
    if (const Command* const action = find_action(command, {word})) return *action;
  return command;
}

std::string list_of(const std::vector<Command>& commands) {
  std::string text;
  for (const Command& command : commands)
    if (!command.hidden) text += fmt::format("  {:<14} {}\n", command.name, command.summary);
  return text;
}

std::string common_flag_table() { return config::flag_table_of<CommonFlags>(); }

// All flags, grouped by heading.
std::string flag_tables(const Command& command) {
  std::string text;
  for (const FlagGroup& group : command.flags) {
    const std::string table = config::flag_table(group.fields());
    if (table.empty()) continue;
    text += fmt::format("{}{}:\n{}", text.empty() ? "" : "\n",
                        group.heading.empty() ? "Flags" : group.heading, table);
  }
  return text;
}

// The most used flags, in the order of their list.
std::string first_flag_table(const Command& command) {
  std::string text = "Flags:\n";
  size_t num_flags = 0;
  std::vector<config::Section> lists;
  for (const FlagGroup& group : command.flags) lists.push_back(group.fields());
  for (const config::Section& list : lists)
    num_flags += static_cast<size_t>(
        std::count_if(list.fields.begin(), list.fields.end(),
                      [](const config::Field& field) { return !field.hidden; }));
  for (const std::string_view name : command.first_flags) {
    const config::Field* found = nullptr;
    for (const config::Section& list : lists)
      for (const config::Field& field : list.fields)
        if (found == nullptr && config::flag_word(field) == name) found = &field;
    if (found != nullptr) text += config::flag_line(*found);
  }
  return text + fmt::format("  {:<32} show the other {} too\n", "--help-all",
                            num_flags - command.first_flags.size());
}

// Breaks the lines of flags at spaces, so that they fit into `width`. Continuation lines start in
// the column of the help texts.
std::string with_narrow_flags(const std::string& text, size_t width) {
  constexpr size_t kHelpColumn = 35;
  const std::string margin(kHelpColumn, ' ');
  std::istringstream lines(text);
  std::string narrow;
  for (std::string line; std::getline(lines, line);) {
    const bool is_flag = line.starts_with("  -") || line.starts_with(margin);
    for (size_t space; is_flag && line.size() > width; line = margin + line.substr(space + 1)) {
      space = line.rfind(' ', width);
      if (space == std::string::npos || space <= kHelpColumn) break;
      narrow += line.substr(0, space) + '\n';
    }
    narrow += line + '\n';
  }
  return narrow;
}

std::string_view heading_of(HelpGroup group) {
  switch (group) {
    case HelpGroup::GetStarted:
      return "Get started";
    case HelpGroup::ModelsAndData:
      return "Models and data";
    case HelpGroup::TrainAndUse:
      return "Train and use";
    case HelpGroup::RunJobs:
      return "Run jobs";
    case HelpGroup::Look:
      return "Look";
    case HelpGroup::Advanced:
      return "Advanced";
  }
  return "";
}

std::string example_block(const Command& command) {
  return command.examples.empty()
             ? ""
             : fmt::format("\nExamples:\n\n```\n{}```\n", indented(command.examples));
}

std::string markdown_of(const Command& command, std::string_view heading) {
  std::string text =
      fmt::format("\n{}\n\n{}.\n\n```\n{}```\n", heading, command.summary, indented(command.usage));
  if (const std::string tables = flag_tables(command); !tables.empty())
    text += fmt::format("\n```\n{}```\n", tables);
  return text;
}

int run_help(Context& context, const Words& arguments) {
  HelpFlags flags;
  const Words names = current_words(context.parse(flags, arguments));
  if (flags.markdown) {
    fmt::print("{}", commands_markdown());
    return 0;
  }
  if (flags.man) {
    fmt::print("{}", manual_page());
    return 0;
  }
  if (names.empty()) {
    fmt::print("{}", overview_text());
    return 0;
  }
  std::vector<std::string> known;
  for (const Command& command : commands()) {
    if (!command.hidden) known.emplace_back(command.name);
    if (command.name != names[0]) continue;
    print_help(help_text(command, {names.begin() + 1, names.end()},
                         flags.all ? HelpDepth::All : HelpDepth::Usual));
    return 0;
  }
  throw ConfigError(
      fmt::format("there is no command `{}`{}", names[0], did_you_mean(names[0], known)),
      {.hint = "`convoy --help` lists them"});
}

}  // namespace

std::string overview_text() {
  std::string text =
      "convoy: fine-tunes and runs language models, on one device or many\n\n"
      "Usage: convoy COMMAND [flags]\n";
  for (size_t at = 0; at < commands().size();) {
    const HelpGroup group = commands()[at].group;
    std::vector<Command> members;
    for (; at < commands().size() && commands()[at].group == group; ++at)
      members.push_back(commands()[at]);
    text += fmt::format("\n{}:\n{}", heading_of(group), list_of(members));
  }
  return text +
         "\n`convoy COMMAND --help` has the flags and examples of each.\n"
         "`convoy --version` prints the version.\n" +
         exit_code_sentence();
}

std::string help_text(const Command& command, const Words& words, HelpDepth depth) {
  const Command& part = named_part(command, words);
  std::string text = fmt::format("{}\n\nUsage:\n{}", part.summary, indented(part.usage));
  if (!part.actions.empty())
    text += fmt::format("\nActions, with their own flags and `convoy {} ACTION --help`:\n{}",
                        part.name, list_of(part.actions));
  const bool shows_all = depth == HelpDepth::All || part.first_flags.empty();
  if (const std::string tables = flag_tables(part); !tables.empty())
    text += "\n" + (shows_all ? tables : first_flag_table(part));
  text += "\nCommon flags:\n" + common_flag_table();
  return text + "\nExamples:\n" + indented(part.examples);
}

void print_help(const std::string& text) {
  const int64_t columns = terminal_size(STDOUT_FILENO).columns;
  fmt::print("{}", columns > 0 ? with_narrow_flags(text, static_cast<size_t>(columns)) : text);
}

std::string commands_markdown() {
  std::string text =
      "# Commands\n\nGenerated by `convoy help --markdown`; a test compares. `snake_case` and "
      "`dash-case` spellings of"
      "\nevery flag are equal. stdout carries data, stderr progress and messages.\n\n## Common "
      "flags\n\n```\n" +
      common_flag_table() + "```\n";
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    text += markdown_of(command, fmt::format("## convoy {}", command.name));
    text += example_block(command);
    for (const Command& action : command.actions)
      if (!action.hidden)
        text += markdown_of(action, fmt::format("### convoy {} {}", command.name, action.name)) +
                example_block(action);
  }
  text += "\n## Earlier words\n\nThey stay accepted.\n\n| typed | is now |\n|---|---|\n";
  for (const std::string& old : old_spellings()) {
    Words words;
    std::istringstream typed(old);
    for (std::string word; typed >> word;) words.push_back(word);
    text +=
        fmt::format("| `convoy {}` | `convoy {}` |\n", old, fmt::join(current_words(words), " "));
  }
  return text;
}

Command help_command() {
  return {.name = "help",
          .summary = "Show what a command does, with examples",
          .usage = "convoy help [COMMAND [ACTION]] [--all]",
          .examples = "convoy help train\nconvoy help data mix\nconvoy help --markdown",
          .flags = {flags_of<HelpFlags>()},
          .run = run_help,
          .group = HelpGroup::GetStarted};
}

}  // namespace convoy::apps
