// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/ledger/changed_settings.h"

#include <fmt/format.h>

#include <map>

#include "convoy/core/base/utf8.h"
#include "convoy/core/settings/process_flags.h"

namespace convoy::process {
namespace {

using nlohmann::json;

constexpr size_t kMostCharacters = 60;

// Splits only objects into their members: a list counts as one value.
void flatten(const json& value, const std::string& path, std::map<std::string, json>& values) {
  if (!value.is_object()) {
    values[path] = value;
    return;
  }
  for (const auto& [key, member] : value.items())
    flatten(member, path.empty() ? key : path + "." + key, values);
}

// The value as valid UTF-8, whatever bytes the user typed.
std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string words_of(const json& value) {
  std::string text;
  if (value.is_string()) {
    text = json::parse(dumped(value)).get<std::string>();
  } else if (value.is_array()) {
    for (const json& item : value) text += (text.empty() ? "" : ", ") + words_of(item);
  } else if (!value.is_null()) {
    text = dumped(value);
  }
  if (text.empty()) return "nothing";
  if (cut_to_characters(text, kMostCharacters)) text += "...";
  return text;
}

// A sentence for settings whose values mean nothing to a reader, such as hashes.
std::string known_reason(const std::string& path) {
  if (path == "model.identity") return "the model, its adapter or its chat template has changed";
  if (path == "pipeline_version")
    return "this version of Convoy gives other rows for the same settings";
  return path.starts_with("prompts.") && (path.ends_with(".generate") ||
                                          path.ends_with(".evaluate") || path.ends_with(".improve"))
             ? fmt::format("the text of {} has changed", path)
             : std::string();
}

}  // namespace

std::string changed_settings(const json& now, const json& then) {
  std::map<std::string, json> ours, theirs;
  flatten(now, "", ours);
  flatten(then, "", theirs);
  std::map<std::string, std::pair<json, json>> all;
  for (const auto& [path, value] : ours) all[path].first = value;
  for (const auto& [path, value] : theirs) all[path].second = value;
  std::string text;
  for (const auto& [path, values] : all) {
    if (values.first == values.second) continue;
    std::string change = known_reason(path);
    if (change.empty()) {
      const std::string flag = settings::process_flag(path);
      change =
          fmt::format("{}{}: {} now, {} then", path, flag.empty() ? "" : fmt::format(" ({})", flag),
                      words_of(values.first), words_of(values.second));
    }
    text += (text.empty() ? "" : "; ") + change;
  }
  return text;
}

}  // namespace convoy::process
