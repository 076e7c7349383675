// SPDX-License-Identifier: Apache-2.0
//
// Settings from the file of another program, DeepSpeed or accelerate. A key of ours names the file,
// and a reader turns it into values of our fields. The values must not contradict other sources'
// values of the same fields.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "convoy/core/config/document.h"
#include "convoy/core/config/error_list.h"

namespace convoy::config {

struct ImportedValue {
  std::string path;      // our field: "train.learning_rate"
  Node node;             // the value as our field reads it, at its place in the file
  std::string spelling;  // key in the other program's file: "optimizer.params.lr"
  // True for the other program's default of a key that its file leaves out. Any source but a preset
  // overrides it.
  bool is_default = false;
  // The value as the file writes it; empty unless `node` holds a translation of that text.
  std::string written = {};

  // For messages: the words in the file, and our words beside them when they differ.
  std::string quoted() const;
};

struct Imported {
  std::vector<ImportedValue> values;
  std::vector<std::string> notices;
};

// One kind of foreign configuration.
struct Import {
  // Our keys that name the foreign file, such as "train.deepspeed". The highest source with one of
  // these keys counts.
  std::vector<std::string> keys;
  // Reads the foreign file. `found`: the nodes of `keys`. Adds errors to the list.
  std::function<void(const std::map<std::string, Node>& found, Imported&, ErrorList&)> read;
};

// Returns the file that `value` names: relative to the file that contains it, else to the working
// directory. Throws ConfigError naming both places; `key` is the key of `value`.
std::filesystem::path find_named_file(const Node& value, const std::string& key);

}  // namespace convoy::config
