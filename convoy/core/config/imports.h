// SPDX-License-Identifier: Apache-2.0
//
// Settings that another program's file gives: DeepSpeed's, accelerate's. A key of ours names the
// file, a reader turns it into values of our fields, and these must not contradict what the sources
// say of the same fields.
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
  std::string spelling;  // its key there: "optimizer.params.lr"
  // Not written there: what the other program takes then. Any source but a preset beats it.
  bool is_default = false;
  std::string written = {};  // where `node` says the same in our words: what stands in the file

  // For messages: the file's words, and ours beside them where they differ.
  std::string quoted() const;
};

struct Imported {
  std::vector<ImportedValue> values;
  std::vector<std::string> notices;
};

// One kind of foreign configuration.
struct Import {
  std::vector<std::string>
      keys;  // of ours: "train.deepspeed"; the highest source that has one counts
  // `found`: the nodes of those keys. Adds what is wrong to the list.
  std::function<void(const std::map<std::string, Node>& found, Imported&, ErrorList&)> read;
};

// The file that `value` names: beside the file that names it, else in the working directory. Throws
// ConfigError naming both places; `key` is what `value` belongs to.
std::filesystem::path find_named_file(const Node& value, const std::string& key);

}  // namespace convoy::config
