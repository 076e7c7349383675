// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/sources/dataset_info.h"

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/utf8.h"
#include "convoy/data/datasets/sources/dataset_layout.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kShownCharacters = 200;

Json json_of(const KnownDataset& known) {
  Json fields = {{"problem", known.problem_fields}};
  for (const auto& [name, field] :
       {std::pair("choices", known.choices_field), std::pair("solution", known.solution_field),
        std::pair("answer", known.answer_field)})
    if (*field != '\0') fields[name] = field;
  return {{"key", known.key},       {"hub_id", known.hub_ids[0]},  {"hub_ids", Json(known.hub_ids)},
          {"config", known.config}, {"fields", std::move(fields)}, {"about", known.about}};
}

Json json_of_files(const std::vector<fs::path>& files) {
  int64_t rows = 0;
  int64_t bytes = 0;
  Json names = Json::array();
  for (const fs::path& file : files) {
    rows += open_rows(file)->skip(INT64_MAX);
    bytes += static_cast<int64_t>(fs::file_size(file));
    names.push_back(file.string());
  }
  return {{"rows", rows}, {"bytes", bytes}, {"files", std::move(names)}};
}

Json json_of_layout(const fs::path& folder) {
  Json configs = Json::array();
  for (const DatasetConfig& config : dataset_layout(folder)) {
    Json splits = Json::array();
    for (const DatasetSplit& split : config.splits) {
      Json entry = {{"name", split.name}};
      entry.update(json_of_files(split.files));
      splits.push_back(std::move(entry));
    }
    configs.push_back({{"name", config.name}, {"splits", std::move(splits)}});
  }
  return configs;
}

void add_first_row(Json& info, const Dataset& dataset) {
  const auto rows = open_dataset(dataset);
  const auto row = rows->next();
  info["first_row"] = row ? row->value : Json();
}

Json info_of_files(Json info, const Dataset& dataset) {
  info["is_here"] = true;
  info.update(json_of_files(dataset.files));
  add_first_row(info, dataset);
  return info;
}

std::string shown(const Json& value) {
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  return cut_to_characters(text, kShownCharacters) ? text + "..." : text;
}

std::string fields_text(const Json& fields) {
  std::string text;
  for (const auto& [name, field] : fields.items()) {
    std::string keys;
    if (field.is_string()) keys = field.get<std::string>();
    if (field.is_array())
      for (const Json& key : field) keys += (keys.empty() ? "" : " + ") + key.get<std::string>();
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, keys);
  }
  return text;
}

// The accepted ids except the first; empty when there are none.
std::string other_ids_text(const Json& info) {
  std::string text;
  if (info.contains("hub_ids"))
    for (const Json& id : info.at("hub_ids"))
      if (id != info.at("hub_id")) text += (text.empty() ? "" : ", ") + id.get<std::string>();
  return text;
}

std::string split_text(const Json& split) {
  return fmt::format("    {}: {}, {}, {}\n", split.at("name").get<std::string>(),
                     counted(split.at("rows").get<int64_t>(), "row"),
                     counted(split.at("bytes").get<int64_t>(), "byte"),
                     counted(std::ssize(split.at("files")), "file"));
}

std::string line_of(const Json& info, const char* label, const char* key) {
  const auto found = info.find(key);
  if (found == info.end() || !found->is_string() || found->get<std::string>().empty()) return {};
  return fmt::format("{:<10}{}\n", std::string(label) + ":", found->get<std::string>());
}

}  // namespace

Json dataset_list() {
  Json list = Json::array();
  for (const KnownDataset& known : known_datasets()) {
    Json entry = json_of(known);
    entry["is_here"] = find_dataset_folder({.name = known.key}).has_value();
    list.push_back(std::move(entry));
  }
  return list;
}

std::string dataset_list_text() {
  std::string text;
  for (const Json& entry : dataset_list()) {
    const std::string config = entry.at("config").get<std::string>();
    const std::string others = other_ids_text(entry);
    text +=
        fmt::format("{:<17}{}{}{}{}\n    {}\n    {}\n", entry.at("key").get<std::string>(),
                    entry.at("hub_id").get<std::string>(), others.empty() ? "" : " or " + others,
                    config.empty() ? "" : " (" + config + ")",
                    entry.at("is_here").get<bool>() ? ", here" : ", not here",
                    entry.at("about").get<std::string>(), fields_text(entry.at("fields")));
  }
  return text +
         "Any other: the id of a data set in the local hub cache, a file, a folder, a pattern.\n";
}

Json dataset_info(const DatasetRequest& request) {
  Json info = {{"name", request.name}};
  const KnownDataset* const known = find_known_dataset(request.name);
  if (known != nullptr) info.update(json_of(*known));
  const auto folder = find_dataset_folder(request);
  info["is_here"] = folder.has_value();
  if (folder) {
    info["folder"] = folder->path.string();
    if (!folder->hub_id.empty()) info["hub_id"] = folder->hub_id;
    info["commit"] = folder->commit;
    info["configs"] = json_of_layout(folder->path);
  } else if (known != nullptr) {
    info["download"] = dataset_download_hint(known->hub_ids[0], request.revision);
    return info;
  }
  if (!folder) return info_of_files(std::move(info), find_dataset(request));
  std::optional<Dataset> dataset;
  try {
    dataset = find_dataset(request);
  } catch (const DataError& error) {  // the error lists the configs or splits to choose from
    info["unread"] = error.sentence();
    return info;
  }
  info["config"] = dataset->config;
  info["split"] = dataset->split;
  add_first_row(info, *dataset);
  return info;
}

std::string dataset_info_text(const Json& info) {
  std::string text = line_of(info, "data set", "name") + line_of(info, "about", "about") +
                     line_of(info, "hub id", "hub_id") + line_of(info, "config", "config") +
                     line_of(info, "split", "split") + line_of(info, "folder", "folder") +
                     line_of(info, "commit", "commit") + line_of(info, "unread", "unread");
  if (const std::string others = other_ids_text(info); !others.empty())
    text += "or as:    " + others + "\n";
  if (info.contains("fields")) text += "fields:   " + fields_text(info.at("fields")) + "\n";
  if (info.contains("download"))
    text += "not here: " + info.at("download").get<std::string>() + "\n";
  if (info.contains("rows"))
    text += fmt::format("rows:     {} in {} bytes\n", info.at("rows").get<int64_t>(),
                        info.at("bytes").get<int64_t>());
  if (info.contains("configs"))
    for (const Json& config : info.at("configs")) {
      text += fmt::format("  {}\n", config.at("name").get<std::string>());
      for (const Json& split : config.at("splits")) text += split_text(split);
    }
  if (info.contains("first_row")) {
    text += "first row:\n";
    if (info.at("first_row").is_object())
      for (const auto& [key, value] : info.at("first_row").items())
        text += fmt::format("  {}: {}\n", key, shown(value));
  }
  return text;
}

}  // namespace convoy::data
