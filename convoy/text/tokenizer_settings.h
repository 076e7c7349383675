// SPDX-License-Identifier: Apache-2.0
//
// tokenizer_config.json as transformers 5 reads it: named tokens, added tokens, and whether BOS and EOS are put around a
// text.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace convoy::text {

struct TokenizerSettings {
  // bos_token, eos_token and every other named token, as chat templates see them.
  std::map<std::string, std::string> named_tokens;
  // AddedToken objects, in the order in which they are added; those with a declared place have an "id".
  nlohmann::json added_tokens = nlohmann::json::array();
  // Set when the file says add_bos_token or add_eos_token: transformers then replaces the post-processor.
  std::optional<bool> add_bos;
  std::optional<bool> add_eos;
  nlohmann::ordered_json chat_template;  // null, a string, or a list of {name, template}
  std::string bytes;                     // the file as read; empty when there is none

  // Throws DataError. A missing file is an empty one.
  static TokenizerSettings load(const std::filesystem::path& folder);
  std::optional<std::string> named(const std::string& name) const;
};

}  // namespace convoy::text
