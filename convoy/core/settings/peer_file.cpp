// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/peer_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "convoy/core/base/lower_case.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/base/text_as.h"

namespace convoy::settings {
namespace {

using config::Node;
using config::NodeKind;

std::string shown(const Node& node) {
  if (node.kind == NodeKind::Scalar) return fmt::format("\"{}\"", node.text);
  return node.kind == NodeKind::List ? "a list" : "a section";
}

bool is_harmless(const PeerKey& key, const Node& node) {
  if (node.kind == NodeKind::Null) return true;
  if (node.kind != NodeKind::Scalar) return node.items.empty() && node.entries.empty();
  const std::string value = lower_case(node.text);
  return value == "auto" ||
         std::find(key.harmless.begin(), key.harmless.end(), value) != key.harmless.end();
}

}  // namespace

PeerFile::PeerFile(const Node& root, std::string program, const std::vector<PeerKey>& keys,
                   config::Imported& imported, config::ErrorList& errors)
    : root_(root),
      program_(std::move(program)),
      keys_(keys),
      imported_(imported),
      errors_(errors) {}

void PeerFile::check_keys() {
  if (root_.kind != NodeKind::Map) {
    errors_.add(
        root_.error(fmt::format("wanted {}'s sections in braces, found {}", program_,
                                root_.kind == NodeKind::Null ? "nothing" : shown(root_)),
                    "", "write {\"SECTION\": {\"KEY\": VALUE}}, or name the file that holds it"));
    return;
  }
  check(root_, "");
  for (const auto& [why, keys] : without_effect_)
    imported_.notices.push_back(fmt::format(
        "{}: without effect: {}: {}", root_.origin.empty() ? root_.file : root_.origin, keys, why));
}

void PeerFile::check(const Node& map, const std::string& above) {
  for (const auto& [key, node] : map.entries) check_key(node, above + key, key, above);
}

void PeerFile::check_key(const Node& node, const std::string& path, const std::string& key,
                         const std::string& above) {
  if (node.kind == NodeKind::Map && is_section(path)) return check(node, path + ".");
  const PeerKey* const rule = known(path);
  if (rule == nullptr) {
    if (!is_section(path)) return refuse_unknown(node, key, above);
    if (node.kind != NodeKind::Null)
      errors_.add(
          node.error(fmt::format("{}: wanted a section, found {}", name_of(path), shown(node)),
                     name_of(path), "write its keys in braces"));
    return;
  }
  if (rule->action == PeerAction::Read || is_harmless(*rule, node)) return;
  if (rule->action == PeerAction::Refuse) {
    errors_.add(node.error(node.kind == NodeKind::Scalar
                               ? fmt::format("{}: {} is not supported", name_of(path), node.text)
                               : fmt::format("{} is not supported", name_of(path)),
                           name_of(path), rule->why));
    return;
  }
  std::string& keys = without_effect_[rule->why];
  keys += fmt::format("{}{} (line {})", keys.empty() ? "" : ", ", name_of(path), node.line);
}

std::string PeerFile::name_of(const std::string& path) const {
  const auto spelled = spelled_.find(path);
  return spelled == spelled_.end() ? path : spelled->second;
}

const PeerKey* PeerFile::known(const std::string& path) const {
  for (const PeerKey& key : keys_) {
    if (key.path == path) return &key;
    if (key.path.ends_with(".*")) {
      const std::string section = key.path.substr(0, key.path.size() - 2);
      if (path == section || path.starts_with(section + ".")) return &key;
    }
  }
  return nullptr;
}

bool PeerFile::is_section(const std::string& path) const {
  return std::any_of(keys_.begin(), keys_.end(), [&path](const PeerKey& key) {
    return key.path.starts_with(path + ".") && !key.path.ends_with(".*");
  });
}

void PeerFile::refuse_unknown(const Node& node, const std::string& key, const std::string& above) {
  std::vector<std::string> beside;
  std::string elsewhere;
  for (const PeerKey& candidate : keys_) {
    const std::string& path = candidate.path;
    if (path.starts_with(above))
      beside.push_back(path.substr(above.size(), path.find('.', above.size()) - above.size()));
    if (elsewhere.empty() && path.ends_with("." + key)) elsewhere = path;
  }
  std::string meant = nearest_word(key, beside);
  const std::string name = name_of(above + key);
  // Keeps the user's own prefix of names.
  if (!meant.empty()) meant = name.substr(0, name.size() - key.size()) + meant;
  if (meant.empty()) meant = elsewhere;
  errors_.add(
      node.error(fmt::format("{} has no key `{}`{}", program_, name,
                             meant.empty() ? "" : fmt::format(", did you mean `{}`?", meant)),
                 name, meant.empty() ? "remove it" : ""));
}

const Node* PeerFile::written(const std::string& path) const {
  const Node* at = &root_;
  for (size_t begin = 0; at != nullptr && begin <= path.size();) {
    const size_t dot = std::min(path.find('.', begin), path.size());
    at = at->find(std::string_view(path).substr(begin, dot - begin));
    begin = dot + 1;
  }
  return at == nullptr || at->kind == NodeKind::Null ? nullptr : at;
}

const Node* PeerFile::find(const std::string& path) const {
  const Node* const node = written(path);
  const bool is_open =
      node != nullptr && node->kind == NodeKind::Scalar && lower_case(node->text) == "auto";
  return is_open ? nullptr : node;
}

void PeerFile::refuse_kind(const std::string& path, const std::string& wanted) {
  const Node& node = *written(path);
  errors_.add(node.error(fmt::format("{}: wanted {}, found {}", name_of(path), wanted, shown(node)),
                         name_of(path)));
}

std::optional<double> PeerFile::number(const std::string& path) {
  const Node* const node = find(path);
  if (node == nullptr) return std::nullopt;
  const auto value = text_as<double>(node->text);
  if (node->kind == NodeKind::Scalar && value && std::isfinite(*value)) return value;
  refuse_kind(path, "a number");
  return std::nullopt;
}

std::optional<int64_t> PeerFile::integer(const std::string& path) {
  const std::optional<double> value = number(path);
  if (!value) return std::nullopt;
  if (std::trunc(*value) == *value && std::abs(*value) <= 9007199254740992.0)
    return static_cast<int64_t>(*value);
  refuse_kind(path, "an integer");
  return std::nullopt;
}

std::optional<bool> PeerFile::flag(const std::string& path) {
  const std::optional<std::string> value = word(path);
  if (!value) return std::nullopt;
  if (*value == "true" || *value == "false") return *value == "true";
  refuse_kind(path, "true or false");
  return std::nullopt;
}

std::optional<std::string> PeerFile::word(const std::string& path) {
  const Node* const node = find(path);
  if (node == nullptr) return std::nullopt;
  if (node->kind == NodeKind::Scalar) return lower_case(node->text);
  refuse_kind(path, "a word");
  return std::nullopt;
}

config::ImportedValue PeerFile::value_of(const std::string& path, const std::string& setting,
                                         std::string text) const {
  Node node = *written(path);
  std::string as_written = node.kind == NodeKind::Scalar ? node.text : "";
  node.kind = NodeKind::Scalar;
  node.text = std::move(text);
  node.quoted = false;
  return {.path = setting,
          .node = std::move(node),
          .spelling = name_of(path),
          .written = std::move(as_written)};
}

void PeerFile::give(const std::string& path, const std::string& setting, std::string text) {
  imported_.values.push_back(value_of(path, setting, std::move(text)));
}

void PeerFile::give_weakly(const std::string& path, const std::string& setting, std::string text) {
  give(path, setting, std::move(text));
  imported_.values.back().is_default = true;
}

void PeerFile::give_as_written(const std::string& path, const std::string& setting) {
  imported_.values.push_back({.path = setting, .node = *written(path), .spelling = name_of(path)});
}

void PeerFile::give_default(const std::string& path, const std::string& missing,
                            const std::string& setting, std::string text) {
  notice(path, fmt::format("{} is not given: {} is {}'s {}, unless it is set", missing, setting,
                           program_, text));
  give_weakly(path, setting, std::move(text));
  config::ImportedValue& value = imported_.values.back();
  value.spelling = missing;
  value.written.clear();
}

void PeerFile::refuse(const std::string& path, const std::string& message, std::string hint) {
  errors_.add(written(path)->error(message, name_of(path), std::move(hint)));
}

void PeerFile::notice(const std::string& path, const std::string& message) {
  imported_.notices.push_back(fmt::format("{}: {}", written(path)->where(), message));
}

}  // namespace convoy::settings
