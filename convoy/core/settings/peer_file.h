// SPDX-License-Identifier: Apache-2.0
//
// The configuration of another program, read against the list of its keys. No key is ignored
// silently: it becomes a setting of ours, has no effect (with a notice), is refused, or is unknown.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/config/imports.h"

namespace convoy::settings {

// Notice for a request of fp16.
inline constexpr auto kFp16IsBf16 = "computing in bf16: as many bytes, and no loss scaling to tune";

enum class PeerAction {
  Read,      // handled by the code that reads the format
  NoEffect,  // a notice, with the reason
  Refuse,    // an error, with the reason
};

struct PeerKey {
  std::string path;  // "zero_optimization.stage"; "tensorboard.*": all keys below
  PeerAction action = PeerAction::Read;
  std::string why = {};
  std::vector<std::string> harmless = {};  // values in lower case that request nothing
};

class PeerFile {
 public:
  // Keeps references to all but `program`, which names the format in messages: "DeepSpeed".
  PeerFile(const config::Node& root, std::string program, const std::vector<PeerKey>& keys,
           config::Imported& imported, config::ErrorList& errors);

  // From now on messages call the key at `path` by `name`, the user's spelling. For a `root` that
  // is not the user's own text.
  void spell(const std::string& path, std::string name) { spelled_[path] = std::move(name); }

  std::string name_of(const std::string& path) const;

  // Adds unknown and refused keys to the errors, and notices for keys without effect.
  void check_keys();

  // Null when the key is missing, has no value, or leaves the choice open ("auto").
  const config::Node* find(const std::string& path) const;
  // Like find(), but returns "auto" too.
  const config::Node* written(const std::string& path) const;
  // Empty when find() is null, and when the value has another type, which is added to the errors.
  std::optional<double> number(const std::string& path);
  std::optional<int64_t> integer(const std::string& path);
  std::optional<bool> flag(const std::string& path);
  std::optional<std::string> word(const std::string& path);  // in lower case

  // Our `setting` gets the value `text` from the key at `path`, which must exist.
  config::ImportedValue value_of(const std::string& path, const std::string& setting,
                                 std::string text) const;
  void give(const std::string& path, const std::string& setting, std::string text);
  // Like give(), but every source except a preset overrides the value. The caller checks the
  // result.
  void give_weakly(const std::string& path, const std::string& setting, std::string text);
  // Like give(), with the value that the key has in the file.
  void give_as_written(const std::string& path, const std::string& setting);
  // Gives the other program's default for a missing key, with a notice and the place of `path`.
  void give_default(const std::string& path, const std::string& missing, const std::string& setting,
                    std::string text);

  void refuse(const std::string& path, const std::string& message, std::string hint = {});
  void notice(const std::string& path, const std::string& message);

 private:
  void check(const config::Node& map, const std::string& above);
  void check_key(const config::Node& node, const std::string& path, const std::string& key,
                 const std::string& above);
  const PeerKey* known(const std::string& path) const;
  bool is_section(const std::string& path) const;
  void refuse_unknown(const config::Node& node, const std::string& key, const std::string& above);
  void refuse_kind(const std::string& path, const std::string& wanted);

  const config::Node& root_;
  std::string program_;
  const std::vector<PeerKey>& keys_;
  config::Imported& imported_;
  config::ErrorList& errors_;
  std::map<std::string, std::string> spelled_;         // by path, if they differ
  std::map<std::string, std::string> without_effect_;  // reason -> "key (line 3), key (line 4)"
};

}  // namespace convoy::settings
