// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/text/tokenizer_settings.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/io/model_text.h"
#include "convoy/data/text/checked_json.h"

namespace convoy::text {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int64_t kMaxSettingsBytes = int64_t{32} << 20;

// The text of a token. A file has it as a string or as an AddedToken object.
std::optional<std::string> token_text(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value["content"].is_string())
    return value["content"].get<std::string>();
  return std::nullopt;
}

// An AddedToken object for a token. `special_by_default`: a token that is only a string is special
// and not normalised.
nlohmann::json added_token(const ordered_json& value, bool special_by_default) {
  const auto flag = [&](const char* key, bool otherwise) {
    return value.is_object() && value.contains(key) && value[key].is_boolean()
               ? value[key].get<bool>()
               : otherwise;
  };
  const bool special = flag("special", special_by_default);
  return {{"content", token_text(value).value_or("")},
          {"single_word", flag("single_word", false)},
          {"lstrip", flag("lstrip", false)},
          {"rstrip", flag("rstrip", false)},
          {"normalized", flag("normalized", !special)},
          {"special", special}};
}

void read_declared_tokens(const ordered_json& root, const fs::path& file, nlohmann::json& out) {
  const auto declared = root.find("added_tokens_decoder");
  if (declared == root.end() || !declared->is_object()) return;
  std::vector<std::pair<int64_t, nlohmann::json>> tokens;
  for (const auto& [key, value] : declared->items()) {
    const int64_t id = text_as<int64_t>(key).value_or(-1);
    if (id < 0 || id > kMaxTokenId || !token_text(value))
      throw DataError(fmt::format("added_tokens_decoder[`{}`]: wanted an id from 0 to {} and an "
                                  "object with content",
                                  key, kMaxTokenId),
                      {.file = file.string(),
                       .key = "added_tokens_decoder",
                       .hint = "get the tokenizer's files again"});
    nlohmann::json token = added_token(value, false);
    token["id"] = id;
    tokens.emplace_back(id, std::move(token));
  }
  std::sort(tokens.begin(), tokens.end(),
            [](const auto& left, const auto& right) { return left.first < right.first; });
  for (auto& [id, token] : tokens) out.push_back(std::move(token));
}

void read_named_tokens(const ordered_json& root, TokenizerSettings& settings) {
  for (const auto& [key, value] : root.items()) {
    if (!key.ends_with("_token")) continue;
    if (auto text = token_text(value)) settings.named_tokens[key] = *text;
  }
  const auto extra = root.find("extra_special_tokens");
  if (extra == root.end() || !extra->is_object()) return;
  for (const auto& [key, value] : extra->items())
    if (auto text = token_text(value)) settings.named_tokens[key] = *text;
}

// Declares named and extra tokens that are not declared yet as special tokens.
void read_further_tokens(const ordered_json& root, TokenizerSettings& settings) {
  std::set<std::string> seen;
  for (const auto& token : settings.added_tokens) seen.insert(token["content"].get<std::string>());
  const auto add = [&](const ordered_json& value) {
    const auto text = token_text(value);
    if (!text || text->empty() || !seen.insert(*text).second) return;
    settings.added_tokens.push_back(added_token(value, true));
  };
  for (const char* name :
       {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"})
    if (root.contains(name)) add(root[name]);
  for (const char* list : {"additional_special_tokens", "extra_special_tokens"})
    if (root.contains(list) && root[list].is_structured())
      for (const auto& value : root[list]) add(value);
}

TokenizerSettings read_settings(const fs::path& folder) {
  TokenizerSettings settings;
  const fs::path file = io::place_of_model_text(folder, "tokenizer_config.json");
  auto text = io::find_model_text(folder, "tokenizer_config.json", kMaxSettingsBytes);
  if (!text) return settings;
  settings.bytes = *std::move(text);
  const ordered_json root = parse_checked_json(settings.bytes, file);
  if (!root.is_object())
    throw DataError(fmt::format("{}: wanted a JSON object", file.string()),
                    {.hint = "get the tokenizer's files again"});
  read_declared_tokens(root, file, settings.added_tokens);
  read_named_tokens(root, settings);
  read_further_tokens(root, settings);
  if (root.contains("chat_template")) settings.chat_template = root["chat_template"];
  return settings;
}

}  // namespace

TokenizerSettings TokenizerSettings::load(const fs::path& folder, const std::string& eos_token) {
  TokenizerSettings settings = read_settings(folder);
  if (eos_token.empty()) return settings;
  settings.named_tokens["eos_token"] = eos_token;
  settings.bytes += "\neos_token " + eos_token;
  return settings;
}

std::optional<std::string> TokenizerSettings::named(const std::string& name) const {
  const auto found = named_tokens.find(name);
  return found == named_tokens.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace convoy::text
