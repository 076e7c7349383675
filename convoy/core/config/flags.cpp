// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <variant>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/config/value.h"

namespace convoy::config {
namespace {

std::string underscored(std::string_view text) {
  std::string name(text);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool is_bool(const Field& field) { return std::holds_alternative<bool*>(field.value); }

bool is_number_list(const Field& field) {
  return std::holds_alternative<std::vector<int64_t>*>(field.value) ||
         std::holds_alternative<std::vector<double>*>(field.value);
}

// True for "5", "-1", "1e-3", "2,4": words that may continue a list of numbers.
bool looks_like_number(std::string_view text) {
  const size_t first = text.find_first_not_of("+-.");
  return !text.empty() && first != std::string_view::npos && first < 3 &&
         std::isdigit(static_cast<unsigned char>(text[first])) &&
         text.find_first_not_of("0123456789+-.eE,") == std::string_view::npos;
}

class FlagParser {
 public:
  explicit FlagParser(const std::vector<Section>& lists) {
    for (const Section& list : lists)
      for (const Field& field : list.fields) fields_.push_back(&field);
  }

  std::vector<std::string> parse(const std::vector<std::string>& arguments,
                                 Positionals positionals) {
    std::vector<std::string> rest;
    for (size_t at = 0; at < arguments.size(); ++at) {
      const std::string& argument = arguments[at];
      if (argument == "--" || (!is_flag(argument) && positionals == Positionals::EndFlags)) {
        rest.insert(rest.end(), arguments.begin() + at + (argument == "--" ? 1 : 0),
                    arguments.end());
        break;
      }
      if (!is_flag(argument))
        rest.push_back(argument);
      else
        at = read_flag(arguments, at);
    }
    return rest;
  }

  // Sets all given fields.
  TakenFlags take(const std::vector<Section>& taken, const std::vector<std::string>& arguments) {
    TakenFlags found;
    const auto word = [&arguments](size_t at) {
      return arguments.begin() + static_cast<std::ptrdiff_t>(at);
    };
    for (size_t at = 0; at < arguments.size(); ++at) {
      const size_t first = at;
      const size_t num_given = given_.size();
      if (arguments[at] == "--") {
        found.positionals.insert(found.positionals.end(), word(at + 1), arguments.end());
        at = arguments.size() - 1;
      } else if (is_flag(arguments[at])) {
        at = read_flag(arguments, at);
      } else {
        found.positionals.push_back(arguments[at]);
      }
      const size_t num_taken = found.given.size();
      for (size_t index = num_given; index < given_.size(); ++index)
        if (belongs_to(*given_[index], taken)) found.given.push_back(given_[index]->name);
      if (found.given.size() == num_taken)
        found.left.insert(found.left.end(), word(first), word(at + 1));
    }
    return found;
  }

 private:
  static bool is_flag(std::string_view argument) {
    return argument.size() > 1 && argument[0] == '-' &&
           (argument[1] == '-' || std::isalpha(static_cast<unsigned char>(argument[1])));
  }

  static bool belongs_to(const Field& field, const std::vector<Section>& lists) {
    return std::any_of(lists.begin(), lists.end(), [&field](const Section& list) {
      return std::any_of(list.fields.begin(), list.fields.end(),
                         [&field](const Field& own) { return own.value == field.value; });
    });
  }

  const Field* find(const std::string& name) const {
    for (const Field* field : fields_)
      if (is_flag_of(*field, name)) return field;
    return nullptr;
  }

  [[noreturn]] void unknown(const std::string& argument, const std::string& name) const {
    std::vector<std::string> known;
    for (const Field* field : fields_) known.push_back("--" + flag_word(*field));
    for (const Field* field : fields_)
      if (!field->flag.empty()) known.push_back("--" + dashed(field->name));
    for (const Field* field : fields_)
      for (const std::string& alias : field->aliases)
        if (alias.size() > 1) known.push_back("--" + dashed(alias));
    const std::string near = nearest_word("--" + dashed(name), known);
    throw ConfigError(fmt::format("unknown flag {}{}", argument,
                                  near.empty() ? "" : fmt::format(", did you mean {}?", near)),
                      {.key = argument, .hint = near.empty() ? "see --help" : ""});
  }

  void set(const Field& field, const std::string& text) {
    Node node;
    node.kind = NodeKind::Scalar;
    node.text = text;
    node.origin = "command line";
    const std::string path = "--" + flag_word(field);
    const bool adds = std::find(given_.begin(), given_.end(), &field) != given_.end();
    given_.push_back(&field);
    if (auto* names = std::get_if<NameList*>(&field.value)) {
      if (!adds) (*names)->names.clear();
      (*names)->names.push_back(text);
      check_bounds(field, node, path);
      return;
    }
    if (is_number_list(field) || std::holds_alternative<std::vector<std::string>*>(field.value))
      node = comma_list(text);
    set_value(field, node, path);
  }

  static Node comma_list(const std::string& text) {
    Node list;
    list.kind = NodeKind::List;
    list.origin = "command line";
    size_t begin = 0;
    while (begin <= text.size()) {
      const size_t end = std::min(text.find(',', begin), text.size());
      Node item;
      item.kind = NodeKind::Scalar;
      item.text = text.substr(begin, end - begin);
      item.origin = "command line";
      list.items.push_back(item);
      begin = end + 1;
    }
    return list;
  }

  size_t set_from_next(const Field& field, const std::vector<std::string>& arguments, size_t at) {
    const bool has_next = at + 1 < arguments.size();
    // In "--prompt --json" the value was forgotten; "--text --" and "--text -1" may be intended.
    const bool next_is_flag = has_next && arguments[at + 1].starts_with("--") &&
                              find(underscored(arguments[at + 1].substr(2))) != nullptr;
    if (!has_next || next_is_flag)
      throw ConfigError(
          fmt::format("{} needs a value ({})", arguments[at], value_kind(field)),
          {.key = arguments[at], .hint = fmt::format("write {} VALUE", arguments[at])});
    size_t last = at + 1;
    std::string text = arguments[last];
    // "--dims 4 8 16", as argparse reads it.
    while (is_number_list(field) && last + 1 < arguments.size() &&
           looks_like_number(arguments[last + 1]))
      text += "," + arguments[++last];
    set(field, text);
    return last;
  }

  // Returns the index of the last argument used. The functions that it calls do the same.
  size_t read_flag(const std::vector<std::string>& arguments, size_t at) {
    return arguments[at].starts_with("--") ? read_long(arguments, at) : read_short(arguments, at);
  }

  size_t read_long(const std::vector<std::string>& arguments, size_t at) {
    const std::string& argument = arguments[at];
    const size_t equals = argument.find('=');
    const std::string name =
        underscored(argument.substr(2, equals == std::string::npos ? equals : equals - 2));
    const Field* field = find(name);
    if (field == nullptr && equals == std::string::npos && name.starts_with("no_")) {
      const Field* positive = find(name.substr(3));
      if (positive != nullptr && is_bool(*positive)) {
        set(*positive, "false");
        return at;
      }
    }
    if (field == nullptr) unknown(argument.substr(0, equals), name);
    if (equals != std::string::npos) {
      set(*field, argument.substr(equals + 1));
      return at;
    }
    if (!is_bool(*field)) return set_from_next(*field, arguments, at);
    set(*field, "true");
    return at;
  }

  size_t read_short(const std::vector<std::string>& arguments, size_t at) {
    const std::string& argument = arguments[at];
    for (size_t letter = 1; letter < argument.size(); ++letter) {
      const std::string name(1, argument[letter]);
      const Field* field = find(name);
      if (field == nullptr) unknown(letter == 1 ? argument : "-" + name, argument.substr(1));
      if (is_bool(*field)) {
        set(*field, "true");
      } else if (letter + 1 < argument.size()) {
        set(*field, argument.substr(letter + 1));
        return at;
      } else {
        return set_from_next(*field, arguments, at);
      }
    }
    return at;
  }

  std::vector<const Field*> fields_;
  std::vector<const Field*> given_;
};

std::string flag_spelling(const Field& field) {
  std::string text;
  for (const std::string& alias : field.aliases)
    if (alias.size() == 1) text += fmt::format("-{}, ", alias);
  text += "--" + flag_word(field);
  if (is_bool(field)) return text;
  std::vector<std::string> choices = field.choices;
  std::erase(choices, "");  // an empty default is no word to type
  if (!choices.empty()) return fmt::format("{} {}", text, fmt::join(choices, "|"));
  const std::string kind = value_kind(field);  // "name: number" is the kind of {name: number, ...}
  return fmt::format("{} {}", text,
                     kind.starts_with("name:") ? "{...}" : kind.substr(0, kind.find(' ')));
}

}  // namespace

std::string dashed(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::string flag_word(const Field& field) {
  return dashed(field.flag.empty() ? field.name : field.flag);
}

bool is_flag_of(const Field& field, std::string_view name) {
  const std::string wanted = underscored(name);
  return field.name == wanted || (!field.flag.empty() && field.flag == wanted) ||
         std::find(field.aliases.begin(), field.aliases.end(), wanted) != field.aliases.end();
}

std::vector<std::string> parse_flags(const std::vector<Section>& lists,
                                     const std::vector<std::string>& arguments,
                                     Positionals positionals) {
  return FlagParser(lists).parse(arguments, positionals);
}

TakenFlags take_flags(const std::vector<Section>& taken, const std::vector<Section>& left,
                      const std::vector<std::string>& arguments) {
  std::vector<Section> all = taken;
  all.insert(all.end(), left.begin(), left.end());
  return FlagParser(all).take(taken, arguments);
}

void copy_values(const Section& from, const Section& to, const std::vector<std::string>& names) {
  for (size_t at = 0; at < to.fields.size(); ++at) {
    if (std::find(names.begin(), names.end(), to.fields[at].name) == names.end()) continue;
    std::visit([&](auto* member) { *member = *std::get<decltype(member)>(from.fields[at].value); },
               to.fields[at].value);
  }
}

std::vector<std::string> flags_that_differ(const Section& flags, const Section& defaults) {
  std::vector<std::string> arguments;
  for (size_t at = 0; at < flags.fields.size(); ++at) {
    const Field& field = flags.fields[at];
    const std::string value = value_yaml(field);
    if (value == value_yaml(defaults.fields[at])) continue;
    const std::string flag = flag_word(field);
    if (is_bool(field)) {
      arguments.push_back((value == "true" ? "--" : "--no-") + flag);
      continue;
    }
    const auto* text = std::get_if<std::string*>(&field.value);
    arguments.push_back("--" + flag);
    arguments.push_back(text != nullptr ? **text : value);
  }
  return arguments;
}

void refuse_without_effect(const Section& flags, const Section& defaults,
                           const std::vector<std::string>& names, std::string_view where) {
  for (size_t at = 0; at < flags.fields.size(); ++at) {
    const Field& field = flags.fields[at];
    const std::string value = value_yaml(field);
    if (std::find(names.begin(), names.end(), field.name) == names.end() ||
        value == value_yaml(defaults.fields[at]))
      continue;
    const bool negated = is_bool(field) && value == "false";
    const std::string flag = (negated ? "--no-" : "--") + flag_word(field);
    throw ConfigError(fmt::format("{} has no effect {}", flag, where),
                      {.key = flag, .hint = "leave it out"});
  }
}

std::string flag_line(const Field& field) {
  const std::string value = value_yaml(field);
  const bool plain = value == "false" || value == "\"\"" || value == "[]" || value == "{}";
  const std::string spelling = flag_spelling(field);
  // A long list of choices gets its own line; the help follows below, in its column.
  const std::string gap = spelling.size() > 32 ? fmt::format("\n{:35}", "") : " ";
  return fmt::format("  {:<32}{}{}{}\n", spelling, gap, field.help,
                     plain ? "" : fmt::format(" (default {})", value));
}

std::string flag_table(const Section& list) {
  std::string table;
  for (const Field& field : list.fields)
    if (!field.hidden) table += flag_line(field);
  return table;
}

}  // namespace convoy::config
