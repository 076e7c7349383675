// SPDX-License-Identifier: Apache-2.0
#include "convoy/config/resolve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "convoy/base/suggest.h"
#include "convoy/config/describe.h"
#include "convoy/config/document.h"
#include "convoy/config/file_stack.h"
#include "convoy/config/value.h"

namespace convoy::config {
namespace {

std::string lower_case(std::string text) {
  for (char& letter : text)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// A value found in one source, under the spelling used there.
struct Given {
  Node node;
  std::string spelling;
};

// What one source says, by canonical path.
using Layer = std::map<std::string, Given>;

// The names of keys as environment variables.
struct EnvironmentNames {
  std::map<std::string, std::string> paths;            // name -> key path
  std::map<std::string, std::string> other_spellings;  // name of an alias -> name

  EnvironmentNames(const Section& list, const Sources& sources) {
    for_each_field(list, "", [&](const std::string& path, const Field& field) {
      const std::string section = path.substr(0, path.size() - field.name.size());
      paths[environment_name(path)] = path;
      if (!field.winning_alias.empty())
        paths[environment_name(section + field.winning_alias)] = section + field.winning_alias;
      for (const std::string& alias : field.aliases)
        other_spellings[environment_name(section + alias)] = environment_name(path);
    });
    for (const KeyRule& rule : sources.rules)
      paths.try_emplace(environment_name(rule.path), rule.path);
    for (const auto& [name, path] : sources.environment_names) paths[name] = path;
  }

  // The key that `word` is the environment name of; empty = of none.
  std::string key_of(const std::string& word) const {
    const auto alias = other_spellings.find(word);
    const auto known = paths.find(alias == other_spellings.end() ? word : alias->second);
    return known == paths.end() ? "" : known->second;
  }
};

// Turns the trees of sources into layers by the field list and the rules.
class Flattener {
 public:
  Flattener(const Section& list, const std::vector<KeyRule>& rules, const EnvironmentNames& names,
            std::vector<std::string>& notices, ErrorList& errors)
      : list_(list), rules_(rules), names_(names), notices_(notices), errors_(errors) {
    for_each_field(list_, "", [this](const std::string& path, const Field& field) {
      for (const std::string& alias : field.root_aliases) root_aliases_[alias] = {path, &field};
    });
  }

  Layer flatten(const Node& tree) {
    layer_.clear();
    if (tree.kind == NodeKind::Null) return {};
    if (tree.kind != NodeKind::Map) {
      errors_.add(tree.error("wanted `key: value` lines"));
      return {};
    }
    walk(tree, list_, "", "");
    return std::move(layer_);
  }

 private:
  void walk(const Node& map, const Section& section, const std::string& canonical,
            const std::string& spelled) {
    for (const auto& [key, value] : map.entries) {
      try {
        read_key(key, value, section, canonical, spelled);
      } catch (const ConfigError& error) {
        errors_.add(error);
      }
    }
  }

  void read_key(const std::string& key, Node node, const Section& section,
                const std::string& canonical, const std::string& spelled) {
    const std::string spelling = spelled + key;
    if (node.kind == NodeKind::Null) {
      // A key without a value says nothing: what lies below stays.
      if (!is_known(section, key, canonical + key)) fail_unknown(node, section, key, spelling);
      return;
    }
    if (!apply_rules(node, canonical + key, spelling)) return;
    if (const Field* field = find_field(section, key)) {
      record(canonical + field->name, *field, key, {std::move(node), spelling});
    } else if (const auto alias = root_aliases_.find(canonical + key);
               alias != root_aliases_.end()) {
      record(alias->second.first, *alias->second.second, key, {std::move(node), spelling});
    } else if (const Section* child = find_section(section, key)) {
      if (node.kind != NodeKind::Map)
        throw node.error(
            fmt::format("{}: wanted a section with keys such as `{}`, found a value", spelling,
                        child->fields.empty() ? "..." : child->fields[0].name),
            spelling);
      walk(node, *child, canonical + child->name + ".", spelling + ".");
    } else {
      fail_unknown(node, section, key, spelling);
    }
  }

  static const Field* find_field(const Section& section, const std::string& key) {
    for (const Field& field : section.fields)
      if (field.name == key || field.winning_alias == key || contains(field.aliases, key))
        return &field;
    return nullptr;
  }

  static const Section* find_section(const Section& section, const std::string& key) {
    for (const Section& child : section.sections)
      if (child.name == key || contains(child.aliases, key)) return &child;
    return nullptr;
  }

  bool is_known(const Section& section, const std::string& key, const std::string& path) const {
    return find_field(section, key) != nullptr || find_section(section, key) != nullptr ||
           root_aliases_.contains(path) ||
           std::any_of(rules_.begin(), rules_.end(),
                       [&path](const KeyRule& rule) { return rule.path == path; });
  }

  // Returns false when the value is dealt with.
  bool apply_rules(Node& node, const std::string& path, const std::string& spelling) {
    for (const KeyRule& rule : rules_) {
      if (rule.path != path) continue;
      const bool scalar = node.kind == NodeKind::Scalar;
      if (!rule.values.empty() && !(scalar && contains(rule.values, lower_case(node.text))))
        continue;
      if (rule.action == KeyAction::Refuse) {
        const std::string value = scalar ? ": " + node.text : "";
        throw node.error(fmt::format("{}{} is not supported", spelling, value), spelling,
                         rule.text);
      }
      if (!rule.text.empty())
        notices_.push_back(
            rule.action == KeyAction::Notice
                ? fmt::format("{}: {} has no effect: {}", node.where(), spelling, rule.text)
                : fmt::format("{}: {}: {}", node.where(), spelling, rule.text));
      if (rule.action != KeyAction::Replace) return false;
      node.text = rule.replacement;
      return true;
    }
    return true;
  }

  void record(const std::string& path, const Field& field, const std::string& key, Given given) {
    const auto before = layer_.find(path);
    if (before == layer_.end()) {
      layer_.emplace(path, std::move(given));
      return;
    }
    Given& other = before->second;
    if (!field.winning_alias.empty()) {
      const bool new_wins = key == field.winning_alias;
      const Given& winner = new_wins ? given : other;
      const Given& loser = new_wins ? other : given;
      notices_.push_back(fmt::format("{}: {} is used instead of {}", winner.node.where(),
                                     winner.spelling, loser.spelling));
      if (new_wins) other = std::move(given);
      return;
    }
    set_value(field, other.node, other.spelling);
    const std::string first = value_yaml(field);
    set_value(field, given.node, given.spelling);
    if (value_yaml(field) != first)
      throw given.node.error(
          fmt::format("{} and {} ({}) are two spellings of one setting, with different values",
                      given.spelling, other.spelling, other.node.where()),
          given.spelling, "keep one of them");
  }

  [[noreturn]] void fail_unknown(const Node& node, const Section& section, const std::string& key,
                                 const std::string& spelling) const {
    if (errors_.full()) throw node.error(fmt::format("unknown key `{}`", spelling), spelling);
    if (const std::string meant = names_.key_of(key); !meant.empty())
      throw node.error(
          fmt::format("{} is the name of an environment variable; the key is {}", spelling, meant),
          spelling, node.kind == NodeKind::Scalar ? fmt::format("{}={}", meant, node.text) : "");
    std::vector<std::string> known;
    for (const Field& field : section.fields) {
      known.push_back(field.name);
      known.insert(known.end(), field.aliases.begin(), field.aliases.end());
    }
    for (const Section& child : section.sections) known.push_back(child.name);
    if (&section == &list_) known.insert(known.end(), {"include", "preset"});
    std::string hint;
    if (const std::string near = nearest_word(key, known); !near.empty()) {
      const std::string section_path = spelling.substr(0, spelling.size() - key.size());
      hint = fmt::format(", did you mean `{}{}`?", section_path, near);
    } else {
      for_each_field(list_, "", [&](const std::string& path, const Field& field) {
        if (hint.empty() && may_mean(key, path, field))
          hint = fmt::format(", did you mean `{}`?", path);
      });
    }
    throw node.error(fmt::format("unknown key `{}`{}", spelling, hint), spelling);
  }

  const Section& list_;
  const std::vector<KeyRule>& rules_;
  const EnvironmentNames& names_;
  std::vector<std::string>& notices_;
  ErrorList& errors_;
  std::map<std::string, std::pair<std::string, const Field*>> root_aliases_;
  Layer layer_;
};

// Puts `value` at a dotted path of a tree.
void insert(Node& tree, const std::string& path, Node value) {
  Node* at = &tree;
  size_t begin = 0;
  while (true) {
    const size_t dot = path.find('.', begin);
    const std::string key = path.substr(begin, dot == std::string::npos ? dot : dot - begin);
    at->kind = NodeKind::Map;
    auto entry = std::find_if(at->entries.begin(), at->entries.end(),
                              [&key](const auto& known) { return known.first == key; });
    if (entry == at->entries.end()) {
      Node child;
      child.origin = value.origin;
      at->entries.emplace_back(key, std::move(child));
      entry = at->entries.end() - 1;
    }
    at = &entry->second;
    if (dot == std::string::npos) break;
    begin = dot + 1;
  }
  *at = std::move(value);
}

void insert_override(Node& tree, const std::string& text, std::string& preset) {
  const size_t equals = text.find('=');
  std::string path = text.substr(0, equals);
  std::replace(path.begin(), path.end(), '-', '_');
  const bool empty_part = path.empty() || path.front() == '.' || path.back() == '.' ||
                          path.find("..") != std::string::npos;
  if (equals == std::string::npos || empty_part)
    throw ConfigError(fmt::format("command line: wanted key=value, found \"{}\"", text),
                      {.key = text, .hint = "such as train.batch_size=2"});
  if (path == "preset") {
    preset = text.substr(equals + 1);
  } else {
    insert(tree, path, parse_inline(text.substr(equals + 1), "command line"));
  }
}

Node override_tree(const std::vector<std::string>& overrides, std::string& preset,
                   ErrorList& errors) {
  Node tree;
  tree.origin = "command line";
  for (const std::string& text : overrides) {
    try {
      insert_override(tree, text, preset);
    } catch (const ConfigError& error) {
      errors.add(error);
    }
  }
  return tree;
}

Node environment_tree(const EnvironmentNames& names, const Sources& sources,
                      std::vector<std::string>& notices) {
  Node tree;
  for (const auto& [name, text] : sources.environment) {
    if (text.empty()) continue;
    if (const auto known = names.paths.find(name); known != names.paths.end()) {
      insert(tree, known->second, parse_inline(text, "environment " + name));
      notices.push_back(fmt::format("environment {}={} sets {}", name, text, known->second));
    } else if (const auto alias = names.other_spellings.find(name);
               alias != names.other_spellings.end()) {
      notices.push_back(
          fmt::format("environment {} is not read; the name is {}", name, alias->second));
    }
  }
  return tree;
}

// The tree of the preset that is asked for; nothing when none is.
std::optional<Node> preset_tree(const Sources& sources, const std::string& wanted,
                                const FileStack& files) {
  Node named_by;
  named_by.origin = "command line";
  std::string preset = wanted;
  if (preset.empty() && files.preset() != nullptr) {
    named_by = *files.preset();
    preset = named_by.text;
  }
  if (preset.empty()) return std::nullopt;
  const auto text = sources.presets.find(preset);
  if (text != sources.presets.end()) return parse_yaml(text->second, "preset " + preset);
  std::vector<std::string> names;
  for (const auto& [name, ignored] : sources.presets) names.push_back(name);
  throw named_by.error(
      fmt::format("there is no preset `{}`{}", preset, did_you_mean(preset, names)), "preset",
      names.empty() ? "" : fmt::format("known: {}", fmt::join(names, ", ")));
}

// What all sources say, from the lowest to the highest.
struct Layers {
  std::vector<Layer> list;
  std::vector<std::string> file_names;  // as FileStack::names()
  bool whole = true;                    // as Resolved::whole()
};

Layers collect_layers(const Section& list, const Sources& sources,
                      std::vector<std::string>& notices, ErrorList& errors) {
  const EnvironmentNames names(list, sources);
  Flattener flattener(list, sources.rules, names, notices, errors);
  FileStack files(errors);
  if (!sources.file.empty()) files.load(sources.file);
  Layers layers{.list = {}, .file_names = files.names(), .whole = errors.empty()};
  std::string preset = sources.preset;
  const Node overrides = override_tree(sources.overrides, preset, errors);
  try {
    if (const std::optional<Node> tree = preset_tree(sources, preset, files)) {
      layers.list.push_back(flattener.flatten(*tree));
      for (auto& [path, given] : layers.list.back()) given.node.origin = given.node.file;
    }
  } catch (const ConfigError& error) {
    errors.add(error);
    layers.whole = false;
  }
  for (const Node& tree : files.trees()) layers.list.push_back(flattener.flatten(tree));
  layers.list.push_back(flattener.flatten(environment_tree(names, sources, notices)));
  layers.list.push_back(flattener.flatten(overrides));
  return layers;
}

}  // namespace

Resolved::Resolved(Section list, std::vector<ResolvedValue> values,
                   std::vector<std::string> notices, bool whole)
    : list_(std::move(list)),
      values_(std::move(values)),
      notices_(std::move(notices)),
      whole_(whole) {}

const ResolvedValue& Resolved::value(const std::string& path) const {
  for (const ResolvedValue& value : values_)
    if (value.path == path) return value;
  throw StateError(fmt::format("there is no setting {}", path));
}

ErrorPlace Resolved::place(const std::string& path, std::string hint) const {
  const ResolvedValue& at = value(path);
  return {.file = at.file, .line = at.line, .key = path, .hint = std::move(hint)};
}

void Resolved::decided(const std::string& path, const std::string& why) {
  for (ResolvedValue& value : values_)
    if (value.path == path) value = {.path = path, .origin = "decided: " + why, .file = {}};
}

std::string Resolved::yaml() const { return dump_yaml(list_); }

std::string Resolved::yaml_with_origins() const {
  std::string out;
  size_t index = 0;
  const auto dump = [&](auto& self, const Section& section, const std::string& indent) -> void {
    for (const Field& field : section.fields)
      out += fmt::format("{:<48}  # {}\n",
                         fmt::format("{}{}: {}", indent, field.name, value_yaml(field)),
                         values_[index++].origin);
    for (const Section& child : section.sections) {
      out += fmt::format("{}{}:\n", indent, child.name);
      self(self, child, indent + "  ");
    }
  };
  dump(dump, list_, "");
  return out;
}

nlohmann::json Resolved::json() const { return dump_json(list_); }

nlohmann::json Resolved::json_with_origins() const {
  nlohmann::json record = nlohmann::json::object();
  size_t index = 0;
  for_each_field(list_, "", [&](const std::string& path, const Field& field) {
    record[path] = {{"value", value_json(field)}, {"origin", values_[index++].origin}};
  });
  return record;
}

Resolved resolve(Section list, const Sources& sources, const CrossRules& rules) {
  std::vector<std::string> notices;
  ErrorList errors;
  const Layers layers = collect_layers(list, sources, notices, errors);
  std::vector<ResolvedValue> values;
  for_each_field(list, "", [&](const std::string& path, const Field& field) {
    ResolvedValue value{.path = path, .origin = "default", .file = {}};
    bool readable = true;
    for (const Layer& layer : layers.list) {
      const auto given = layer.find(path);
      if (given == layer.end()) continue;
      const Node& node = given->second.node;
      // A value that a higher source replaces must still be one the key can have.
      try {
        set_value(field, node, given->second.spelling);
      } catch (const ConfigError& error) {
        errors.add(error);
        readable = false;
      }
      value = {.path = path, .origin = node.where(), .file = node.file, .line = node.line};
    }
    value.readable = readable;
    values.push_back(std::move(value));
  });
  Resolved resolved(std::move(list), std::move(values), std::move(notices), layers.whole);
  if (rules) rules(resolved, errors);
  errors.throw_if_any(layers.file_names);
  return resolved;
}

std::map<std::string, std::string> process_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace convoy::config
