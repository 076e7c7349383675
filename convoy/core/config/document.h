// SPDX-License-Identifier: Apache-2.0
//
// A YAML file as a tree in which every node knows its file and line. Strict where YAML is lax:
// duplicate keys, more than one document, tags and merge keys are errors; depth, nodes and bytes
// are bounded, anchors included.
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
  std::string text;         // Scalar
  bool quoted = false;      // Scalar: written in quotes, so never a number, bool or null
  std::vector<Node> items;  // List
  std::vector<std::pair<std::string, Node>> entries;  // Map, in file order
  std::string
      origin;  // "preset chat-lora", "environment TRAIN_LR", "command line"; empty: file:line
  std::string file;
  int64_t line = 0;

  const Node* find(std::string_view key) const;
  std::string where() const;  // origin, or "file:line"
  // An error at this node's file and line; an origin that is no file goes before the message.
  ConfigError error(const std::string& message, std::string key = {}, std::string hint = {}) const;
};

// `name` stands for the text in messages. Throws ConfigError with file and line. With `errors`,
// what is wrong with one key alone is added there, and the rest is read.
Node parse_yaml(const std::string& text, const std::string& name, ErrorList* errors = nullptr);
// Throws ConfigError; a missing file as well.
Node load_yaml(const std::filesystem::path& path, ErrorList* errors = nullptr);

// The text of a configuration file. Throws ConfigError: missing, too large.
std::string read_config_text(const std::filesystem::path& path);

bool is_utf8(std::string_view text);

// A value given as text outside a file ("[q_proj, v_proj]", "1e-4"): plain text unless it reads as
// a list or map.
Node parse_inline(const std::string& text, const std::string& origin);

}  // namespace convoy::config
