// SPDX-License-Identifier: Apache-2.0
//
// Settings from all their sources, each value with its origin. Precedence, highest first: command
// line, environment, file, its includes, preset, default. Environment names are also accepted on
// the command line. An imported value may override only preset and default; a contradiction to the
// other sources is an error.
//
//   settings::TrainSettings settings;
//   config::Resolved resolved = config::resolve(settings, sources);
//   for (const std::string& notice : resolved.notices()) log.info(notice);
//   write_file_atomic(run / "config.yaml", resolved.yaml());
//
// `settings` must outlive `resolved` and must not move. A worker reads the written file with
// Sources{.file = ...}: no environment, no overrides. Commands that take a training configuration
// call settings::read_train_documents() or resolve_train(), which add its rules and environment
// names.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/config/error_list.h"
#include "convoy/core/config/field_list.h"
#include "convoy/core/config/file_stack.h"
#include "convoy/core/config/imports.h"

namespace convoy::config {

// Action for a key or value of another program's configuration, applied before the field list.
enum class KeyAction {
  Accept,   // the value states what Convoy does anyway
  Notice,   // accepted; `text` says why it has no effect
  Refuse,   // error; `text` says what to do
  Replace,  // read as `replacement`; `text`, when not empty, becomes a notice
  Suggest,  // error; suggests the key `replacement`, with the hint `text`
};

struct KeyRule {
  std::string path;                 // "train.deepspeed"; a section matches everything below it
  std::vector<std::string> values;  // lower case; empty = any value
  KeyAction action = KeyAction::Notice;
  std::string text;
  std::string replacement;
};

struct Sources {
  std::filesystem::path file = {};          // empty: no file
  std::vector<std::string> overrides = {};  // "train.batch_size=1"
  std::map<std::string, std::string> environment = {};
  std::map<std::string, std::string> presets = {};  // name -> YAML text
  std::string preset = {};                          // beats `preset:` in the file
  std::vector<KeyRule> rules = {};
  // Variables with special names: {"DEEPSPEED_CONFIG", "train.deepspeed"}.
  std::map<std::string, std::string> environment_names = {};
  std::vector<Import> imports = {};
  std::optional<FileStack> files = {};  // content of `file`, if it has been read already
};

// A value found in one source, under the spelling used there.
struct Given {
  Node node;
  std::string spelling;
};

// The values of one source, by canonical path.
using Layer = std::map<std::string, Given>;

// The contents of all sources. Values can be resolved from them several times without reading
// again.
struct Documents {
  FileStack files;
  std::vector<Layer> layers;  // from the lowest to the highest
  size_t num_presets = 0;     // number of presets, which are the first of `layers`
  bool lacks_preset = false;  // true: the requested preset cannot be read
  Imported imported;
  std::vector<std::string> notices;
  ErrorList errors;  // without errors of `files`, which holds them itself

  // The same as Resolved::whole().
  bool whole() const { return files.errors().empty() && !lacks_preset; }
};

// The resolved value of one setting.
struct ResolvedValue {
  std::string path;  // "train.batch_size"
  // "default", "preset lora", "run.yaml:7", "environment TRAIN_BATCH_SIZE", "command line",
  // "ds.json:12"
  std::string origin;
  std::string file;  // the file, when the origin is one
  int64_t line = 0;
  bool readable = true;  // false: some source gives a value that the key cannot have
  bool agreed = true;    // false: an import gives another value, which is reported as an error
  // Lines of the value's items and their keys: "[1].weight".
  std::map<std::string, int64_t> lines_below = {};
};

class Resolved {
 public:
  // Holds the values of the struct that `list` points into.
  Resolved(Section list, std::vector<ResolvedValue> values, std::vector<std::string> notices,
           bool whole);

  const std::vector<ResolvedValue>& values() const { return values_; }
  const std::vector<std::string>& notices() const { return notices_; }
  // False when a file or preset could not be read: a missing value may be in that file.
  bool whole() const { return whole_; }
  // Throws StateError on an unknown path.
  const ResolvedValue& value(const std::string& path) const;
  // The place to name in an error about a combination of values.
  ErrorLocation location(const std::string& path, std::string hint = {}) const;

  // Records that the program set the member itself after resolving: the run record shows "decided:
  // ...".
  void decided(const std::string& path, const std::string& why);
  // Adds a warning: something is done differently than requested. Printed more prominently than a
  // notice.
  void warn(std::string sentence) { warnings_.push_back(std::move(sentence)); }
  const std::vector<std::string>& warnings() const { return warnings_; }

  std::string yaml() const;               // reading it back gives the same values; byte-stable
  std::string yaml_with_origins() const;  // each line followed by "  # origin"
  nlohmann::json json() const;            // the tree of values
  // {"train.batch_size": {"value": 1, "origin": "run.yaml:7"}}
  nlohmann::json json_with_origins() const;

 private:
  Section list_;
  std::vector<ResolvedValue> values_;
  std::vector<std::string> notices_;
  std::vector<std::string> warnings_;
  bool whole_;
};

// Checks that concern several keys. Adds to the list. A rule must skip a value that could not be
// read.
using CrossRules = std::function<void(const Resolved&, ErrorList&)>;

// The configuration file with its includes: taken from `sources.files`, or else read here.
FileStack read_files(const Sources& sources);

// Reads each file once. Throws nothing for what it finds: the errors are in the result.
Documents read_documents(const Section& list, const Sources& sources);

// Sets the members behind `list`. Throws one ConfigError with all errors of all sources, each with
// file, line, key and the nearest known key.
Resolved resolve_documents(Section list, const Documents& documents, const CrossRules& rules = {});

// Sets the members behind `list` as far as they can be read, for code that needs values before
// resolve_documents(). Throws no errors: resolve_documents() throws them.
void peek(const Section& list, const Documents& documents);

// Calls resolve_documents() with the result of read_documents().
Resolved resolve(Section list, const Sources& sources, const CrossRules& rules = {});

template <class Settings>
Resolved resolve(Settings& settings, const Sources& sources, const CrossRules& rules = {}) {
  return resolve(list_fields(settings), sources, rules);
}

// Returns `error` at the place of the value that its key names, when that value is in a file and
// the error has no place yet.
ConfigError placed(const ConfigError& error, const Resolved& resolved);

// This process's environment variables, for Sources::environment.
std::map<std::string, std::string> process_environment();

}  // namespace convoy::config
