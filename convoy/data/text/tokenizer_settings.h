// SPDX-License-Identifier: Apache-2.0
//
// tokenizer_config.json as transformers 5 reads it beside a tokenizer.json: named tokens, added
// tokens, the chat template. add_bos_token and add_eos_token have no effect there: the
// post-processor of tokenizer.json decides.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace convoy::text {

struct TokenizerSettings {
  // bos_token, eos_token and every other named token, by the names that chat templates use.
  std::map<std::string, std::string> named_tokens;
  // AddedToken objects, in the order of adding; a token with a declared id has a member "id".
  nlohmann::json added_tokens = nlohmann::json::array();
  nlohmann::ordered_json chat_template;  // null, a string, or a list of {name, template}
  std::string bytes;                     // the file, then a given `eos_token`; empty without a file

  // Reads tokenizer_config.json; a missing file counts as an empty one. A given `eos_token`
  // replaces the token in the file. Throws DataError.
  static TokenizerSettings load(const std::filesystem::path& folder,
                                const std::string& eos_token = {});
  std::optional<std::string> named(const std::string& name) const;
};

}  // namespace convoy::text
