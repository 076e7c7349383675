// SPDX-License-Identifier: Apache-2.0
//
// `convoy help --man`: the commands and their flags as a page for man(1).
#include <fmt/format.h>

#include <sstream>

#include "convoy/apps/front/build_facts.h"
#include "convoy/apps/front/command.h"
#include "convoy/apps/front/help/exit_codes.h"

namespace convoy::apps {
namespace {

// Text as roff prints it. A line may not begin with its control characters.
std::string roff(std::string_view text) {
  std::string out;
  bool begins = true;
  for (const char letter : text) {
    if (begins && (letter == '.' || letter == '\'')) out += "\\&";
    if (letter == '\\')
      out += "\\e";
    else if (letter == '-')
      out += "\\-";
    else
      out += letter;
    begins = letter == '\n';
  }
  return out;
}

std::string as_typed(std::string_view text) {
  std::string out = ".nf\n" + roff(text);
  if (!out.ends_with('\n')) out += '\n';
  return out + ".fi\n";
}

// The names and the help of the flags, one paragraph each.
std::string paragraphs_of(const config::Section& flags) {
  std::string text;
  for (const config::Field& field : flags.fields)
    if (!field.hidden)
      text +=
          fmt::format(".TP\n.B {}\n{}\n", roff("--" + config::flag_word(field)), roff(field.help));
  return text;
}

std::string section_of(const Command& command, const std::string& name) {
  std::string text = fmt::format(".SS \"{}\"\n{}.\n.PP\n{}", roff(name), roff(command.summary),
                                 as_typed(command.usage));
  for (const FlagGroup& group : command.flags) text += paragraphs_of(group.fields());
  if (!command.examples.empty()) text += ".PP\nExamples:\n" + as_typed(command.examples);
  for (const Command& action : command.actions)
    if (!action.hidden) text += section_of(action, fmt::format("{} {}", name, action.name));
  return text;
}

}  // namespace

std::string manual_page() {
  std::string text = fmt::format(
      ".TH CONVOY 1 \"\" \"convoy {}\" \"User Commands\"\n"
      ".SH NAME\nconvoy \\- fine\\-tunes and runs language models, on one device or many\n"
      ".SH SYNOPSIS\n.B convoy\n.I COMMAND\n[flags]\n.SH COMMANDS\n",
      kVersion);
  static CommonFlags common;
  text += ".SS \"Flags of every command\"\n" + paragraphs_of(config::list_fields(common));
  for (const Command& command : commands())
    if (!command.hidden) text += section_of(command, fmt::format("convoy {}", command.name));
  return text + ".SH EXIT STATUS\n" + as_typed(exit_code_lines());
}

}  // namespace convoy::apps
