// SPDX-License-Identifier: Apache-2.0
//
// The configuration of another program, read against the list of the keys it has. Nothing in it is
// passed over in silence: a key becomes a setting of ours, or is said to have no effect, or is
// refused, or is unknown.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/config/imports.h"

namespace convoy::settings {

// Said where fp16 is asked for.
inline constexpr auto kFp16IsBf16 = "computing in bf16: as many bytes, and no loss scaling to tune";

enum class PeerAction {
  Read,      // by the code that knows the format
  NoEffect,  // said, with the reason
  Refuse,    // an error, with the reason
};

struct PeerKey {
  std::string path;  // "zero_optimization.stage"; "tensorboard.*": whatever lies below
  PeerAction action = PeerAction::Read;
  std::string why = {};
  std::vector<std::string> harmless = {};  // values, lower case, that ask for nothing
};

class PeerFile {
 public:
  // Keeps references to all but `program`, which names the format in messages: "DeepSpeed".
  PeerFile(const config::Node& root, std::string program, const std::vector<PeerKey>& keys,
           config::Imported& imported, config::ErrorList& errors);

  // Messages name the key at `path` so from now on: as the user wrote it, where `root` was made
  // from that.
  void spell(const std::string& path, std::string name) { spelled_[path] = std::move(name); }

  std::string name_of(const std::string& path) const;

  // Adds unknown and refused keys to the errors, and notices for those without effect.
  void check_keys();

  // Null where the key is not there, has no value, or leaves it open ("auto").
  const config::Node* find(const std::string& path) const;
  // As find(), "auto" included: what is written there.
  const config::Node* written(const std::string& path) const;
  // Empty where find() is null; and where the value is of another kind, which is added to the
  // errors.
  std::optional<double> number(const std::string& path);
  std::optional<int64_t> integer(const std::string& path);
  std::optional<bool> flag(const std::string& path);
  std::optional<std::string> word(const std::string& path);  // lower case

  // Our `setting` is `text` by the key at `path`, which is there.
  config::ImportedValue value_of(const std::string& path, const std::string& setting,
                                 std::string text) const;
  void give(const std::string& path, const std::string& setting, std::string text);
  // The same of a value that gives way to any source but a preset; who gives it checks what came of
  // it.
  void give_weakly(const std::string& path, const std::string& setting, std::string text);
  // The key's own value.
  void give_as_written(const std::string& path, const std::string& setting);
  // What the other program takes where it says nothing; said, with the place of `path`.
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
  std::map<std::string, std::string> spelled_;         // by path, where it is not the path
  std::map<std::string, std::string> without_effect_;  // reason -> "key (line 3), key (line 4)"
};

}  // namespace convoy::settings
