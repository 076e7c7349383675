// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/models/result_ends.h"

#include <algorithm>
#include <limits>

#include "convoy/core/io/json_text.h"

namespace convoy::models {
namespace {

using io::Json;

// The ids at which transformers ends a text, from generation_config.json, else from config.json.
std::vector<int64_t> ends_of(const io::ModelFolder& source) {
  constexpr int64_t kMostId = std::numeric_limits<int32_t>::max();
  const auto& generation = source.generation_config();
  if (generation && generation->has("eos_token_id"))
    return generation->ints_or_empty("eos_token_id", 0, kMostId);
  if (source.config().has("eos_token_id"))
    return source.config().ints_or_empty("eos_token_id", 0, kMostId);
  const io::Json* const nested = source.config().find("text_config");
  const auto text = nested != nullptr && nested->is_object()
                        ? source.config().optional_object("text_config")
                        : std::nullopt;
  return text ? text->ints_or_empty("eos_token_id", 0, kMostId) : std::vector<int64_t>();
}

// The keys that transformers takes over from config.json where a folder has no
// generation_config.json.
Json generation_config_of(const io::ModelFolder& source) {
  if (source.generation_config()) return source.generation_config()->value();
  Json config = Json::object();
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"})
    if (source.config().has(key)) config[key] = *source.config().find(key);
  return config;
}

}  // namespace

std::vector<int32_t> unnamed_ends(const io::ModelFolder& source, const ResultEnds& ends) {
  const std::vector<int64_t> known = ends_of(source);
  std::vector<int32_t> unnamed = ends.ids;
  std::erase_if(unnamed, [&known](int32_t id) {
    return std::find(known.begin(), known.end(), id) != known.end();
  });
  return unnamed;
}

std::optional<std::string> generation_config_text(const io::ModelFolder& source,
                                                  const ResultEnds& ends) {
  if (ends.ids.empty()) return std::nullopt;
  const std::vector<int64_t> known = ends_of(source);
  std::vector<int64_t> all(ends.ids.begin(), ends.ids.end());
  for (const int64_t id : known)
    if (std::find(all.begin(), all.end(), id) == all.end()) all.push_back(id);
  if (unnamed_ends(source, ends).empty() && (ends.eos_token.empty() || all == known))
    return std::nullopt;
  Json config = generation_config_of(source);
  config["eos_token_id"] = all.size() == 1 ? Json(all[0]) : Json(all);
  return config.dump(2) + "\n";
}

void name_ends(const io::ModelFolder& source, const ResultEnds& ends,
               std::map<std::string, std::string>& files) {
  if (const auto text = generation_config_text(source, ends))
    files["generation_config.json"] = *text;
  if (ends.eos_token.empty()) return;
  const auto edit = [&](const char* name, const char* key, const Json& value) {
    const auto file = files.find(name);
    if (file == files.end()) return;
    Json json = io::parse_json(file->second, name);
    if (!json.is_object()) return;
    json[key] = value;
    file->second = json.dump(2) + "\n";
  };
  edit("config.json", "eos_token_id", ends.ids.front());
  edit("tokenizer_config.json", "eos_token", ends.eos_token);
  edit("special_tokens_map.json", "eos_token", ends.eos_token);
}

}  // namespace convoy::models
