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

// Turns the trees of sources into layers by the field list and the rules.
class Flattener {
 public:
  Flattener(const Section& list, const std::vector<KeyRule>& rules,
            std::vector<std::string>& notices)
      : list_(list), rules_(rules), notices_(notices) {
    for_each_field(list_, "", [this](const std::string& path, const Field& field) {
      for (const std::string& alias : field.root_aliases) root_aliases_[alias] = {path, &field};
    });
  }

  Layer flatten(const Node& tree) {
    layer_.clear();
    if (tree.kind == NodeKind::Null) return {};
    if (tree.kind != NodeKind::Map) throw tree.error("wanted `key: value` lines");
    walk(tree, list_, "", "");
    return std::move(layer_);
  }

 private:
  void walk(const Node& map, const Section& section, const std::string& canonical,
            const std::string& spelled) {
    for (const auto& [key, value] : map.entries) {
      const std::string spelling = spelled + key;
      Node node = value;
      if (node.kind == NodeKind::Null) {
        // A key without a value says nothing: what lies below stays.
        if (!is_known(section, key, canonical + key)) fail_unknown(node, section, key, spelling);
        continue;
      }
      if (!apply_rules(node, canonical + key, spelling)) continue;
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
    std::vector<std::string> known;
    for (const Field& field : section.fields) {
      known.push_back(field.name);
      known.insert(known.end(), field.aliases.begin(), field.aliases.end());
    }
    for (const Section& child : section.sections) known.push_back(child.name);
    if (&section == &list_) known.insert(known.end(), {"include", "preset"});
    std::string hint = did_you_mean(key, known);
    if (hint.empty()) {
      for_each_field(list_, "", [&](const std::string& path, const Field& field) {
        if (hint.empty() && (field.name == key || contains(field.aliases, key)))
          hint = fmt::format(", did you mean `{}`?", path);
      });
    }
    throw node.error(fmt::format("unknown key `{}`{}", spelling, hint), spelling);
  }

  const Section& list_;
  const std::vector<KeyRule>& rules_;
  std::vector<std::string>& notices_;
  std::map<std::string, std::pair<std::string, const Field*>> root_aliases_;
  Layer layer_;
};

// A file with its includes, from the lowest to the highest.
class FileStack {
 public:
  void load(const std::filesystem::path& path) { load(path, nullptr); }
  std::vector<Node> trees;
  const Node* preset() const {
    return preset_ ? &*preset_ : nullptr;
  }  // the highest file that names one

 private:
  void load(const std::filesystem::path& path, const Node* included_by) {
    std::error_code ignored;
    const std::filesystem::path real = std::filesystem::weakly_canonical(path, ignored);
    const auto above = std::find(open_.begin(), open_.end(), real);
    if (above != open_.end()) {
      std::string chain;
      for (auto file = above; file != open_.end(); ++file) chain += file->string() + " -> ";
      throw included_by->error("the include goes in a circle: " + chain + real.string(), "include");
    }
    Node tree = load_with_place(path, included_by);
    open_.push_back(real);
    load_includes(tree, path.parent_path());
    open_.pop_back();
    if (const Node* name = tree.find("preset"); name != nullptr && name->kind != NodeKind::Null)
      preset_ = *name;
    std::erase_if(tree.entries, [](const auto& entry) {
      return entry.first == "include" || entry.first == "preset";
    });
    trees.push_back(std::move(tree));
  }

  static Node load_with_place(const std::filesystem::path& path, const Node* included_by) {
    std::error_code ignored;
    if (included_by != nullptr && !std::filesystem::exists(path, ignored))
      throw included_by->error(fmt::format("include: there is no file {}", path.string()),
                               "include", "the path is relative to this file");
    return load_yaml(path);
  }

  void load_includes(const Node& tree, const std::filesystem::path& folder) {
    const Node* include = tree.find("include");
    if (include == nullptr || include->kind == NodeKind::Null) return;
    if (include->kind == NodeKind::Map)
      throw include->error("include: wanted a file or a list of files", "include");
    // Two files that include each other's halves twice at each level would take exponential time.
    if (++num_includes_ > 200) throw include->error("more than 200 includes", "include");
    const std::vector<Node> one = {*include};
    for (const Node& item : include->kind == NodeKind::List ? include->items : one) {
      if (item.kind != NodeKind::Scalar)
        throw item.error("include: wanted a file or a list of files", "include");
      load(folder / item.text, &item);
    }
  }

  std::vector<std::filesystem::path> open_;
  std::optional<Node> preset_;
  int num_includes_ = 0;
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

Node override_tree(const std::vector<std::string>& overrides, std::string& preset) {
  Node tree;
  tree.origin = "command line";
  for (const std::string& text : overrides) {
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
  return tree;
}

Node environment_tree(const Section& list, const Sources& sources,
                      std::vector<std::string>& notices) {
  std::map<std::string, std::string> paths;  // environment name -> key path
  std::map<std::string, std::string> other_spellings;
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

  Node tree;
  for (const auto& [name, text] : sources.environment) {
    if (text.empty()) continue;
    if (const auto known = paths.find(name); known != paths.end()) {
      insert(tree, known->second, parse_inline(text, "environment " + name));
      notices.push_back(fmt::format("environment {}={} sets {}", name, text, known->second));
    } else if (const auto alias = other_spellings.find(name); alias != other_spellings.end()) {
      notices.push_back(
          fmt::format("environment {} is not read; the name is {}", name, alias->second));
    }
  }
  return tree;
}

std::vector<Layer> collect_layers(const Section& list, const Sources& sources,
                                  std::vector<std::string>& notices) {
  Flattener flattener(list, sources.rules, notices);
  FileStack files;
  if (!sources.file.empty()) files.load(sources.file);
  std::string preset = sources.preset;
  const Node overrides = override_tree(sources.overrides, preset);

  std::vector<Layer> layers;
  Node named_by;
  named_by.origin = "command line";
  if (preset.empty() && files.preset() != nullptr) {
    named_by = *files.preset();
    preset = named_by.text;
  }
  if (!preset.empty()) {
    const auto text = sources.presets.find(preset);
    if (text == sources.presets.end()) {
      std::vector<std::string> names;
      for (const auto& [name, ignored] : sources.presets) names.push_back(name);
      throw named_by.error(
          fmt::format("there is no preset `{}`{}", preset, did_you_mean(preset, names)), "preset",
          names.empty() ? "" : fmt::format("known: {}", fmt::join(names, ", ")));
    }
    layers.push_back(flattener.flatten(parse_yaml(text->second, "preset " + preset)));
    for (auto& [path, given] : layers.back()) given.node.origin = "preset " + preset;
  }
  for (const Node& tree : files.trees) layers.push_back(flattener.flatten(tree));
  layers.push_back(flattener.flatten(environment_tree(list, sources, notices)));
  layers.push_back(flattener.flatten(overrides));
  return layers;
}

}  // namespace

Resolved::Resolved(Section list, std::vector<ResolvedValue> values,
                   std::vector<std::string> notices)
    : list_(std::move(list)), values_(std::move(values)), notices_(std::move(notices)) {}

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

Resolved resolve(Section list, const Sources& sources) {
  std::vector<std::string> notices;
  const std::vector<Layer> layers = collect_layers(list, sources, notices);
  std::vector<ResolvedValue> values;
  for_each_field(list, "", [&](const std::string& path, const Field& field) {
    ResolvedValue value{.path = path, .origin = "default", .file = {}};
    for (const Layer& layer : layers) {
      const auto given = layer.find(path);
      if (given == layer.end()) continue;
      const Node& node = given->second.node;
      // A value that a higher source replaces must still be one the key can have.
      set_value(field, node, given->second.spelling);
      value = {.path = path, .origin = node.where(), .file = node.file, .line = node.line};
    }
    values.push_back(std::move(value));
  });
  return Resolved(std::move(list), std::move(values), std::move(notices));
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
