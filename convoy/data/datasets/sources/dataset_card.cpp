// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/sources/dataset_card.h"

#include <fnmatch.h>

#include <string_view>
#include <system_error>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/config/document.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;
using config::Node;
using config::NodeKind;

constexpr int64_t kMostCardBytes = int64_t{16} << 20;

// The lines of `configs:` and their indented content; the rest of the card's head may be any YAML.
// The lines before are replaced by empty ones, so that errors have the right line numbers.
std::string configs_of_head(std::string_view card) {
  std::string lines;
  bool in_head = false;
  bool in_configs = false;
  while (!card.empty()) {
    const size_t end = std::min(card.find('\n'), card.size());
    std::string_view line = card.substr(0, end);
    card.remove_prefix(std::min(end + 1, card.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line == "---") {
      if (in_head) break;
      in_head = true;
      lines += '\n';
      continue;
    }
    if (!in_head) return {};
    const bool is_key = !line.empty() && line[0] != ' ' && line[0] != '-' && line[0] != '#';
    if (is_key) in_configs = line.starts_with("configs:");
    if (in_configs) lines += line;
    lines += '\n';
  }
  return lines;
}

void add_paths(CardConfig& config, const std::string& split, const Node& paths) {
  if (paths.kind == NodeKind::Scalar) {
    config.patterns.emplace_back(split, paths.text);
  } else if (paths.kind == NodeKind::List) {
    for (const Node& path : paths.items) add_paths(config, split, path);
  } else {
    throw paths.error("wanted a path or a list of paths", "configs.data_files",
                      "such as data_files: train.jsonl");
  }
}

// Adds the files of a config, in any of the forms "x.jsonl", ["x", "y"], [{split, path}, ...] and
// {train: x, test: y}.
void add_data_files(CardConfig& config, const Node& files) {
  if (files.kind == NodeKind::Map) {
    for (const auto& [split, paths] : files.entries) add_paths(config, split, paths);
  } else if (files.kind == NodeKind::List) {
    for (const Node& item : files.items) {
      const Node* const path = item.find("path");
      const Node* const split = item.find("split");
      add_paths(config, split == nullptr ? "train" : split->text, path == nullptr ? item : *path);
    }
  } else {
    add_paths(config, "train", files);
  }
}

CardConfig config_of(const Node& node) {
  CardConfig config;
  const Node* const name = node.find("config_name");
  const Node* const is_default = node.find("default");
  const Node* const folder = node.find("data_dir");
  const Node* const files = node.find("data_files");
  config.name = name == nullptr ? "default" : name->text;
  config.is_default = is_default != nullptr && is_default->text == "true";
  if (folder != nullptr) config.folder = folder->text;
  if (files != nullptr) add_data_files(config, *files);
  return config;
}

}  // namespace

std::vector<CardConfig> read_dataset_card(const fs::path& folder) {
  const fs::path path = folder / "README.md";
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return {};
  const std::string head = configs_of_head(read_file(path, kMostCardBytes));
  if (head.find_first_not_of('\n') == std::string::npos) return {};
  std::vector<CardConfig> configs;
  try {
    const Node card = config::parse_yaml(head, path.string());
    const Node* const list = card.find("configs");
    if (list != nullptr)
      for (const Node& node : list->items) configs.push_back(config_of(node));
  } catch (const ConfigError& error) {
    throw DataError(fmt::format("the list of files in the card cannot be read: {}", error.what()),
                    {.file = error.location().file,
                     .line = error.location().line,
                     .key = error.location().key,
                     .hint = "correct `configs` in the card, or name the files themselves"});
  }
  std::erase_if(configs, [](const CardConfig& config) {
    return config.patterns.empty() && config.folder.empty();
  });
  return configs;
}

bool fits_pattern(const std::string& file, const std::string& pattern) {
  std::string plain = pattern;
  if (plain.starts_with("./")) plain.erase(0, 2);
  const size_t any = plain.find("**");
  if (any == std::string::npos) return ::fnmatch(plain.c_str(), file.c_str(), FNM_PATHNAME) == 0;
  if (::fnmatch(plain.c_str(), file.c_str(), 0) == 0) return true;
  // "**/" matches folders of any depth, also none.
  return plain.compare(any, 3, "**/") == 0 && fits_pattern(file, plain.erase(any, 3));
}

}  // namespace convoy::data
