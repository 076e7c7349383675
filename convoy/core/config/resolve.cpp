// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/resolve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/config/document.h"
#include "convoy/core/config/flattener.h"
#include "convoy/core/config/value.h"

namespace convoy::config {
namespace {

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

void insert_override(Node& tree, const std::string& text, const EnvironmentNames& names,
                     std::string& preset) {
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
    // `make train CONFIG=c.yaml TRAIN_BATCH_SIZE=1`: an environment name in place of a key.
    if (const std::string meant = names.key_of(path); !meant.empty()) path = meant;
    insert(tree, path, parse_inline(text.substr(equals + 1), "command line"));
  }
}

Node override_tree(const std::vector<std::string>& overrides, const EnvironmentNames& names,
                   std::string& preset, ErrorList& errors) {
  Node tree;
  tree.origin = "command line";
  for (const std::string& text : overrides) {
    try {
      insert_override(tree, text, names, preset);
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
    } else if (const std::string meant = names.nearest(name); !meant.empty()) {
      notices.push_back(
          fmt::format("environment {} names no setting; did you mean {}?", name, meant));
    }
  }
  return tree;
}

// The tree of the requested preset; empty when none is requested.
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

void read_imports(const Sources& sources, const std::map<std::string, Node>& nodes,
                  Documents& documents) {
  for (const Import& import : sources.imports) {
    std::map<std::string, Node> found;
    for (const std::string& key : import.keys)
      if (const auto node = nodes.find(key); node != nodes.end()) found.insert(*node);
    try {
      if (!found.empty()) import.read(found, documents.imported, documents.errors);
    } catch (const ConfigError& error) {
      documents.errors.add(error);
    }
  }
}

// The values from imported files, by our field.
using ImportedValues = std::multimap<std::string, ImportedValue>;

// `auto` leaves the choice to the imported file.
bool leaves_open(const Node& node) { return node.kind == NodeKind::Scalar && node.text == "auto"; }

void add_lines_below(const Node& node, const std::string& path,
                     std::map<std::string, int64_t>& lines) {
  if (!path.empty()) lines[path] = node.line;
  for (size_t index = 0; index < node.items.size(); ++index)
    add_lines_below(node.items[index], fmt::format("{}[{}]", path, index), lines);
  for (const auto& [name, entry] : node.entries)
    add_lines_below(entry, fmt::format("{}.{}", path, name), lines);
}

// Resolves one field's value from all sources, from the lowest to the highest.
class FieldResolver {
 public:
  FieldResolver(const std::string& path, const Field& field, ErrorList& errors)
      : field_(field), errors_(errors), value_{.path = path, .origin = "default", .file = {}} {}

  ResolvedValue resolve(const Documents& documents, const ImportedValues& imported) {
    const auto [begin, end] = imported.equal_range(value_.path);
    const std::vector<Layer>& layers = documents.layers;
    for (size_t index = 0; index <= layers.size(); ++index) {
      if (index == documents.num_presets)
        for (auto at = begin; at != end; ++at)
          if (at->second.is_default) take({at->second.node, at->second.spelling});
      if (index == layers.size()) break;
      const auto given = layers[index].find(value_.path);
      if (given == layers[index].end()) continue;
      take(given->second);
      if (index >= documents.num_presets && !leaves_open(given->second.node)) said_ = given->second;
    }
    for (auto at = begin; at != end; ++at)
      if (!at->second.is_default) lay_over(at->second);
    return value_;
  }

 private:
  // A value that a higher source replaces must still be valid for the key.
  void take(const Given& given) {
    if (!set(given)) return;
    value_ = {.path = value_.path,
              .origin = given.node.where(),
              .file = given.node.file,
              .line = given.node.line,
              .readable = value_.readable};
    add_lines_below(given.node, "", value_.lines_below);
  }

  bool set(const Given& given) {
    try {
      set_value(field_, given.node, given.spelling);
      return true;
    } catch (const ConfigError& error) {
      errors_.add(error);
      value_.readable = false;
      return false;
    }
  }

  void lay_over(const ImportedValue& imported) {
    const Given given{imported.node, imported.spelling};
    if (!said_) {
      take(given);
      said_ = given;
      return;
    }
    if (!value_.readable) return;
    const std::string said = value_yaml(field_);
    if (!set(given) || value_yaml(field_) == said) return;
    value_.agreed = false;
    errors_.add(given.node.error(
        fmt::format("{} is {}, but {} is {} ({})", given.spelling, imported.quoted(),
                    said_->spelling, said, said_->node.where()),
        given.spelling, "make them equal, remove one of them, or write \"auto\" for this one"));
    set(*said_);  // later imported values are compared with this value
  }

  const Field& field_;
  ErrorList& errors_;
  ResolvedValue value_;
  std::optional<Given> said_;  // the value of the highest source that is not a preset
};

std::vector<ResolvedValue> set_values(const Section& list, const Documents& documents,
                                      ErrorList& errors) {
  ImportedValues imported;
  for (const ImportedValue& value : documents.imported.values) imported.emplace(value.path, value);
  std::vector<ResolvedValue> values;
  for_each_field(list, "", [&](const std::string& path, const Field& field) {
    values.push_back(FieldResolver(path, field, errors).resolve(documents, imported));
  });
  return values;
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

ErrorLocation Resolved::location(const std::string& path, std::string hint) const {
  const ResolvedValue& at = value(path.substr(0, path.find('[')));
  ErrorLocation location{.file = at.file, .line = at.line, .key = path, .hint = std::move(hint)};
  // The innermost part of the path that exists in the file: for a missing key the line of its
  // parent is used.
  for (std::string below = path.substr(at.path.size()); !below.empty();
       below.erase(below.find_last_of(".["))) {
    const auto line = at.lines_below.find(below);
    if (line == at.lines_below.end()) continue;
    location.line = line->second;
    break;
  }
  return location;
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

FileStack read_files(const Sources& sources) {
  if (sources.files) return *sources.files;
  FileStack files;
  if (!sources.file.empty()) files.load(sources.file);
  return files;
}

Documents read_documents(const Section& list, const Sources& sources) {
  Documents documents;
  documents.files = read_files(sources);
  const EnvironmentNames names(list, sources);
  Flattener flattener(list, sources, names, documents.notices, documents.errors);
  const auto add_layer = [&](const Node& tree) {
    documents.layers.push_back(flattener.flatten(tree));
  };
  std::string preset = sources.preset;
  const Node overrides = override_tree(sources.overrides, names, preset, documents.errors);
  try {
    if (const std::optional<Node> tree = preset_tree(sources, preset, documents.files)) {
      add_layer(*tree);
      for (auto& [path, given] : documents.layers.back()) given.node.origin = given.node.file;
      documents.num_presets = 1;
    }
  } catch (const ConfigError& error) {
    documents.errors.add(error);
    documents.lacks_preset = true;
  }
  for (const Node& tree : documents.files.trees()) add_layer(tree);
  add_layer(environment_tree(names, sources, documents.notices));
  add_layer(overrides);
  read_imports(sources, flattener.imports(), documents);
  return documents;
}

Resolved resolve_documents(Section list, const Documents& documents, const CrossRules& rules) {
  ErrorList errors = documents.files.errors();
  errors.add(documents.errors);
  std::vector<ResolvedValue> values = set_values(list, documents, errors);
  std::vector<std::string> notices = documents.notices;
  notices.insert(notices.end(), documents.imported.notices.begin(),
                 documents.imported.notices.end());
  Resolved resolved(std::move(list), std::move(values), std::move(notices), documents.whole());
  if (rules) rules(resolved, errors);
  errors.throw_if_any(documents.files.names());
  return resolved;
}

void peek(const Section& list, const Documents& documents) {
  ErrorList ignored;
  set_values(list, documents, ignored);
}

Resolved resolve(Section list, const Sources& sources, const CrossRules& rules) {
  const Documents documents = read_documents(list, sources);
  return resolve_documents(std::move(list), documents, rules);
}

ConfigError placed(const ConfigError& error, const Resolved& resolved) {
  const std::string& key = error.location().key;
  const std::string path = key.substr(0, key.find('['));
  const auto& values = resolved.values();
  const bool is_value = std::any_of(values.begin(), values.end(),
                                    [&](const ResolvedValue& value) { return value.path == path; });
  if (!is_value || !error.location().file.empty()) return error;
  return ConfigError(error.what(), resolved.location(key, error.location().hint));
}

std::map<std::string, std::string> process_environment() { return whole_environment(); }

}  // namespace convoy::config
