// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/flattener.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "convoy/core/base/lower_case.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/config/value.h"

namespace convoy::config {
namespace {

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

const Field* find_field(const Section& section, const std::string& key) {
  for (const Field& field : section.fields)
    if (field.name == key || field.winning_alias == key || contains(field.aliases, key))
      return &field;
  return nullptr;
}

const Section* find_section(const Section& section, const std::string& key) {
  for (const Section& child : section.sections)
    if (child.name == key || contains(child.aliases, key)) return &child;
  return nullptr;
}

ConfigError unknown_key(const Node& node, const std::string& spelling, const std::string& meant,
                        const std::string& hint = "") {
  return node.error(fmt::format("unknown key `{}`{}", spelling,
                                meant.empty() ? "" : fmt::format(", did you mean `{}`?", meant)),
                    spelling, meant.empty() ? "`convoy config schema` lists the keys" : hint);
}

}  // namespace

EnvironmentNames::EnvironmentNames(const Section& list, const Sources& sources) {
  for_each_field(list, "", [&](const std::string& path, const Field& field) {
    const std::string section = path.substr(0, path.size() - field.name.size());
    paths[environment_name(path)] = path;
    if (!field.winning_alias.empty())
      paths[environment_name(section + field.winning_alias)] = section + field.winning_alias;
    for (const std::string& alias : field.aliases)
      other_spellings[environment_name(section + alias)] = environment_name(path);
  });
  // A variable of another program may have the name of a key that only other trainers know, such as
  // LOSS or STAGE.
  const auto is_hinted = [&](const std::string& path) {
    return std::any_of(sources.rules.begin(), sources.rules.end(), [&](const KeyRule& rule) {
      return rule.path == path && rule.action == KeyAction::Suggest;
    });
  };
  for (const KeyRule& rule : sources.rules)
    if (!is_hinted(rule.path)) paths.try_emplace(environment_name(rule.path), rule.path);
  for (const Import& import : sources.imports)
    for (const std::string& key : import.keys) paths.try_emplace(environment_name(key), key);
  for (const auto& [name, path] : sources.environment_names) paths[name] = path;
}

std::string EnvironmentNames::key_of(const std::string& word) const {
  const auto alias = other_spellings.find(word);
  const auto known = paths.find(alias == other_spellings.end() ? word : alias->second);
  return known == paths.end() ? "" : known->second;
}

std::string EnvironmentNames::nearest(const std::string& name) const {
  const std::string section = name.substr(0, name.find('_') + 1);
  if (section.empty()) return {};
  // Only the part after the section is compared: as whole words, MODEL_PATH and MODEL_NAME would be
  // near each other.
  std::vector<std::string> keys;
  for (const auto& [known, path] : paths)
    if (known.starts_with(section) && path.size() > section.size() &&
        path[section.size() - 1] == '.')
      keys.push_back(known.substr(section.size()));
  const std::string key = nearest_word(name.substr(section.size()), keys);
  return key.empty() ? "" : section + key;
}

Flattener::Flattener(const Section& list, const Sources& sources, const EnvironmentNames& names,
                     std::vector<std::string>& notices, ErrorList& errors)
    : list_(list),
      rules_(sources.rules),
      names_(names),
      notices_(notices),
      errors_(errors),
      meant_keys_(list) {
  for (const Import& import : sources.imports)
    import_keys_.insert(import.keys.begin(), import.keys.end());
  for_each_field(list_, "", [this](const std::string& path, const Field& field) {
    for (const std::string& alias : field.root_aliases) root_aliases_[alias] = {path, &field};
  });
}

Layer Flattener::flatten(const Node& tree) {
  layer_.clear();
  if (tree.kind == NodeKind::Null) return {};
  if (tree.kind != NodeKind::Map) {
    errors_.add(tree.error("wanted `key: value` lines", "", "such as train: {batch_size: 4}"));
    return {};
  }
  walk(tree, list_, "", "");
  return std::move(layer_);
}

void Flattener::walk(const Node& map, const Section& section, const std::string& canonical,
                     const std::string& spelled) {
  for (const auto& [key, value] : map.entries) {
    try {
      read_key(key, value, section, canonical, spelled);
    } catch (const ConfigError& error) {
      errors_.add(error);
    }
  }
}

void Flattener::read_key(const std::string& key, Node node, const Section& section,
                         const std::string& canonical, const std::string& spelled) {
  const std::string spelling = spelled + key;
  if (node.kind == NodeKind::Null) {
    // A key without a value changes nothing: the value of the lower source stays.
    if (!is_known(section, key, canonical + key)) fail_unknown(node, section, key, spelling);
    return;
  }
  if (import_keys_.contains(canonical + key)) {
    imports_.insert_or_assign(canonical + key, std::move(node));
    return;
  }
  if (!apply_rules(node, canonical + key, spelling)) return;
  if (const Field* field = find_field(section, key)) {
    record(canonical + field->name, *field, key, {std::move(node), spelling});
  } else if (const auto alias = root_aliases_.find(canonical + key); alias != root_aliases_.end()) {
    record(alias->second.first, *alias->second.second, key, {std::move(node), spelling});
  } else if (const Section* child = find_section(section, key)) {
    if (node.kind != NodeKind::Map)
      throw node.error(fmt::format("{}: wanted a section with keys such as `{}`, found a value",
                                   spelling, child->fields.empty() ? "..." : child->fields[0].name),
                       spelling, fmt::format("write its keys below {}, indented", spelling));
    walk(node, *child, canonical + child->name + ".", spelling + ".");
  } else if (node.kind == NodeKind::Map && has_keys_below(canonical + key + ".")) {
    walk(node, Section(), canonical + key + ".", spelling + ".");
  } else {
    fail_unknown(node, section, key, spelling);
  }
}

bool Flattener::is_known(const Section& section, const std::string& key,
                         const std::string& path) const {
  return find_field(section, key) != nullptr || find_section(section, key) != nullptr ||
         root_aliases_.contains(path) || import_keys_.contains(path) ||
         std::any_of(rules_.begin(), rules_.end(),
                     [&path](const KeyRule& rule) { return rule.path == path; });
}

bool Flattener::has_keys_below(const std::string& section) const {
  const auto alias = root_aliases_.lower_bound(section);
  return (alias != root_aliases_.end() && alias->first.starts_with(section)) ||
         std::any_of(rules_.begin(), rules_.end(),
                     [&section](const KeyRule& rule) { return rule.path.starts_with(section); });
}

bool Flattener::apply_rules(Node& node, const std::string& path, const std::string& spelling) {
  for (const KeyRule& rule : rules_) {
    if (rule.path != path) continue;
    const bool scalar = node.kind == NodeKind::Scalar;
    if (!rule.values.empty() && !(scalar && contains(rule.values, lower_case(node.text)))) continue;
    if (rule.action == KeyAction::Suggest)
      throw unknown_key(node, spelling, rule.replacement, rule.text);
    if (rule.action == KeyAction::Refuse) {
      const std::string value = scalar ? ": " + node.text : "";
      throw node.error(fmt::format("{}{} is not supported", spelling, value), spelling, rule.text);
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

void Flattener::record(const std::string& path, const Field& field, const std::string& key,
                       Given given) {
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

void Flattener::fail_unknown(const Node& node, const Section& section, const std::string& key,
                             const std::string& spelling) {
  if (errors_.full()) throw unknown_key(node, spelling, "");
  if (const std::string meant = names_.key_of(key); !meant.empty())
    throw node.error(
        fmt::format("{} is the name of an environment variable; the key is {}", spelling, meant),
        spelling, node.kind == NodeKind::Scalar ? fmt::format("{}={}", meant, node.text) : "");
  if (const std::string meant = meant_keys_.in_full(spelling); !meant.empty())
    throw unknown_key(node, spelling, meant);
  std::vector<std::string> known;
  for (const Field& field : section.fields) {
    known.push_back(field.name);
    known.insert(known.end(), field.aliases.begin(), field.aliases.end());
  }
  for (const Section& child : section.sections) known.push_back(child.name);
  const std::string above = spelling.substr(0, spelling.size() - key.size());
  for (const std::string& import : import_keys_)
    if (import.starts_with(above)) known.push_back(import.substr(above.size()));
  if (&section == &list_) known.insert(known.end(), {"include", "preset"});
  if (const std::string near = nearest_word(key, known); !near.empty())
    throw unknown_key(node, spelling, above + near);
  if (add_unknown_entries(node, spelling)) return;
  std::string meant = meant_keys_.find(spelling);
  if (meant.empty()) meant = meant_keys_.nearest(spelling);
  throw unknown_key(node, spelling, meant);
}

bool Flattener::add_unknown_entries(const Node& section, const std::string& spelling) {
  std::vector<ConfigError> found;
  bool is_any_meant = false;
  for (const auto& [key, node] : section.entries) {
    const std::string path = fmt::format("{}.{}", spelling, key);
    const std::string meant = meant_keys_.find(path);
    is_any_meant = is_any_meant || !meant.empty();
    found.push_back(unknown_key(node, path, meant));
  }
  if (!is_any_meant) return false;
  for (const ConfigError& error : found) errors_.add(error);
  return true;
}

}  // namespace convoy::config
