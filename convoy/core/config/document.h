// SPDX-License-Identifier: Apache-2.0
//
// A YAML file as a tree in which every node records its file and line. Stricter than YAML:
// duplicate keys, more than one document, tags and merge keys are errors. Depth, nodes and bytes
// are bounded, aliases included.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/config/error_list.h"

namespace convoy::config {

enum class NodeKind { Null, Scalar, List, Map };

struct Node {
  NodeKind kind = NodeKind::Null;
  std::string text;         // for Scalar
  bool quoted = false;      // for Scalar: written in quotes, so never a number, bool or null
  std::vector<Node> items;  // for List
  std::vector<std::pair<std::string, Node>> entries;  // for Map, in file order
  // The source, if it is no file: "preset chat-lora", "environment TRAIN_LR", "command line".
  // Empty: the source is `file`.
  std::string origin;
  std::string file;
  int64_t line = 0;

  const Node* find(std::string_view key) const;
  std::string where() const;  // origin, or "file:line"
  // Returns an error at this node's file and line. When the origin is no file, it precedes the
  // message.
  ConfigError error(const std::string& message, std::string key = {}, std::string hint = {}) const;
};

// `name` stands for the text in messages. Throws ConfigError with file and line. With `errors`,
// errors of single keys are added to it, and the rest is read.
Node parse_yaml(const std::string& text, const std::string& name, ErrorList* errors = nullptr);
// Throws ConfigError, also for a missing file.
Node load_yaml(const std::filesystem::path& path, ErrorList* errors = nullptr);

// Returns the text of a configuration file. Throws ConfigError when it is missing or too large.
std::string read_config_text(const std::filesystem::path& path);

// Parses a value given as text outside a file ("[q_proj, v_proj]", "1e-4"): plain text unless it
// parses as a list or map.
Node parse_inline(const std::string& text, const std::string& origin);

}  // namespace convoy::config
